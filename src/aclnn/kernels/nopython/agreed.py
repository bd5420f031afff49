"""Numbers that kernel texts and the code that launches them must agree on. Imports nothing."""

from __future__ import annotations

FIRST_ARGUMENT = 4  # of a block: before it are items, chunk and two addresses; see kernels.jit

COLUMN_TILE = 128  # columns that sums.down_columns does together
PRODUCT_TILE = 64  # columns that lstm.row_product does together
CELL_TILE = 512  # columns that lstm_cell.backward does together
ADDITIONS = 16  # in a row, in sums

# A tile of products.turned: what it is wide in a and in b, and how many rows are packed at a time.
TILE_ROWS, TILE_COLUMNS, TILE_DEPTH = 6, 64, 448

# What elu.backward is given as x. Falling: the forward's input, and exp is only asked for numbers below 0.
ELU_OF_INPUT, ELU_OF_RESULT, ELU_FALLING = range(3)

# The table of lstm.walk, by position.
(
    STEPS,
    REVERSE,
    PARALLEL,  # address of GOMP_parallel
    GATES,  # entry of lstm.gates, its block and threads
    GATES_BLOCK,
    GATES_THREADS,
    SET_HANDLE,  # addresses of two oneDNN functions
    EXECUTE,
    PRIMITIVE,  # dh_made = grad·w_hh; 0 if lstm.row_product does it
    STREAM,
    ARGUMENTS,
    ARGUMENT_COUNT,
    GRAD_MEMORY,  # the memory object that follows grad
    PRODUCT,  # entry of lstm.row_product, its block and threads
    PRODUCT_BLOCK,
    PRODUCT_THREADS,
    STATUS,  # what oneDNN answered: 0 if all went well
    MADE,  # how many sequences have their dh from the last product
    TABLE_SIZE,
) = range(19)

# Arguments of lstm_forward.gates, by position: the first nine move from step to step. GRAD_MEMORY follows the first.
FORWARD_MOVING, FORWARD_ACTIVE = 9, 14

# Arguments of lstm.gates, by position: the first seven move from step to step, and so does grad.
MOVING, C_BEFORE, GRAD, ACTIVE, MADE_BEFORE, KNOWN = 7, 5, 12, 14, 15, 16
