"""Numbers that kernel texts and the code that launches them must agree on. Imports nothing."""

from __future__ import annotations

# A block, by position: items, items per chunk, the function that says which thread this is and the one that says how
# many there are, then the arguments. 0 and 0: this thread does everything. Up to MOST_THREADS they are the numbers
# themselves: this is thread WHO − 1 of HOW_MANY.
WHO, HOW_MANY, FIRST_ARGUMENT = 2, 3, 4
MOST_THREADS = 4095  # no function lies on the first page

COLUMN_TILE = 128  # columns that sums.down_columns does together
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
    PRIMITIVE,  # of oneDNN for the product of a step; 0 if that is one of our own
    STREAM,
    ARGUMENTS,
    ARGUMENT_COUNT,
    MOVING_MEMORY,  # the memory object of the matrix that moves
    PRODUCT,  # entry of the product of a step, its block and threads
    PRODUCT_BLOCK,
    PRODUCT_THREADS,
    STATUS,  # what oneDNN answered: 0 if all went well
    MADE,  # how many sequences have their dh from the last product
    TABLE_SIZE,
) = range(19)

# Arguments of lstm_forward.gates, by position: the first nine move from step to step.
FORWARD_MOVING, FORWARD_ACTIVE = 9, 14

# Arguments of lstm.gates, by position: the first seven move from step to step, and so does grad.
MOVING, C_BEFORE, GRAD, ACTIVE, MADE_BEFORE, KNOWN = 7, 5, 12, 14, 15, 16

# Tiles of nopython.indirect: the rows of one, and how many terms of a sum are brought near at a time.
ROWS, DEPTH = 6, 256

# The table of nopython.staging, by position: where a picture lies, and how a box of it is laid out. Axes are three.
(
    STAGE,  # the entry of staging.stage for the picture's elements; 0 if boxes are read where they lie
    CHANNELS,
    SIZES,  # of the picture, by axis
    PICTURE_STEPS,  # of the picture in memory: batch, channel, then by axis
    STRIDE,  # between positions of the picture that neighbours of a box meet first, by axis
    BEFORE,  # positions of padding before the picture, by axis
    REACH,  # positions that an output meets beyond the first, by axis
    LAID,  # strides of what is copied: batch, channel, then by axis
    MOVES,  # between neighbours of a box where they are read: batch, channel, then by axis
    STAGE_SIZE,
) = (0, 1, 2, 5, 10, 13, 16, 19, 24, 29)

# The table of the boxes of a convolution, by position: how large the whole is, and one box, then how many there are.
WHOLE, BOX, BOXES, GROUPS, BOX_TABLE = 0, 4, 8, 12, 13

PANELS_TOGETHER = 4  # of one row, in few_rows
POSITIONS_TOGETHER = 288  # whose sums convolve.data keeps near, a multiple of ROWS and of the lanes of a vector
MOST_PARTS = 16  # of the sums of convolve_weights

# The table of convolve.data, by position.
(
    LOTS,  # threads, each with a scratch of its own
    PER_LOT,  # elements of a lot's scratch
    ROOM,  # elements of it for a staged box
    PLACES,  # elements of it for a list of places
    OUTPUTS,  # channels of a group's result
    TERMS,  # of a sum: channels and taps, or rows of gradWeight
    SPLITS,  # into how many parts the panels of the result are divided between threads
    CHAIN_LENGTH,
    PUT,  # the entry of indirect.put for the elements of the result, and the bytes of one
    PUT_SIZE,
    DEPTHS,  # into how many blocks the sum is cut
    ADDS_BIAS,
    ADDS,  # whether the result, float32, is added to what is there
    TOGETHER,  # positions whose sums are made before those of others
    PACKS,  # whether their elements of the picture are packed first; the list of rows then ends with how they lie
    OUT_STEPS,  # of the result in memory: batch, channel, then by axis
    DATA_TABLE,
) = (*range(16), 20)

# The table of convolve_weights, by position; the first ten are those above.
(
    PARTS,  # into how many the sum is cut that are joined in the end
    OUTER_ROOM,  # elements of a lot's scratch for a staged box of the other tensor
    COLUMNS_TOGETHER,  # of the other tensor that are packed before they are multiplied
    TILES_TOGETHER,  # with which they are multiplied, panel by panel
    PACKS_TILES,  # whether these are packed too; the list of rows then ends with how they lie
    IS_WATCHED,  # whether it matters that an element of the result is not finite
    WEIGHT_TABLE,
) = range(10, 17)
