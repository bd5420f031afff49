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

# Tiles of nopython.panels: how many rows they have, the second kind where the first would have idle ones, and how many
# rows of a panel are packed at a time.
TALL, LOW, DEPTH = 6, 4, 256


def tall_panels(rows: int) -> int:
    """How many of the panels of a matrix are TALL; those after them are LOW."""
    rest = rows % TALL
    if rest > LOW:
        return rows // TALL + 1
    return rows // TALL - 1 if rows > TALL and 0 < rest <= 2 * LOW - TALL else rows // TALL


# The table of nopython.staging, by position: where a picture lies, and how a box of it is laid out. Axes are three.
(
    STAGED,  # 1 if boxes are copied, 0 if they are read where they lie
    CHANNELS,
    SIZES,  # of the picture, by axis
    PICTURE_STEPS,  # of the picture in memory: batch, channel, then by axis
    STRIDE,  # between positions that neighbours of a box meet first, by axis
    BEFORE,  # positions of padding before the picture, by axis
    PHASES,  # by axis: a box keeps the positions of each remainder of the stride together
    BEYOND,  # positions that a box needs beyond its size, by axis
    LAID,  # strides of a box: batch, channel, then by axis
    PHASE_LAID,  # strides of the phases, by axis
    STAGE_SIZE,
) = (0, 1, 2, 5, 10, 13, 16, 19, 22, 27, 30)

# The table of the boxes of a convolution, by position: how large the whole is, and one box, then how many there are.
WHOLE, BOX, BOXES, GROUPS, BOX_TABLE = 0, 4, 8, 12, 13

COLUMNS_TOGETHER = 128  # whose panels of b convolve.data packs together
MOST_PARTS = 16  # of the sums of convolve_weights

# The table of convolve.data, by position.
(
    LOTS,  # threads, each with a scratch of its own
    PER_LOT,  # elements of a lot's scratch
    ROOM,  # elements of it for a staged box
    OUTPUTS,  # channels of a group's result
    TAPS,
    TOGETHER,  # panels of b that are packed together
    AT_A_TIME,  # panels of a that stay in the second cache meanwhile
    DEPTHS,  # into how many blocks the sum is cut
    CHAIN_LENGTH,
    ADDS_BIAS,
    OUT_STEPS,  # of the result in memory: batch, channel, then by axis
    DATA_TABLE,
) = (*range(11), 15)

# The table of convolve_weights, by position; the first five are those above.
(
    PARTS,  # into how many the sum is cut that are joined in the end
    SPLITS,  # into how many the columns of the result are divided between threads
    WEIGHT_CHAIN,
    OUTER_ROOM,  # elements of a lot's scratch for a staged box of the other tensor
    WEIGHTS_AT_A_TIME,
    WEIGHT_TABLE,
) = range(5, 11)
