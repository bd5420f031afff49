"""Numbers that kernel sources and the code that launches them must agree on. Imports nothing."""

from __future__ import annotations

# A block, by position: items, items per chunk, the function that says which thread this is and the one that says how
# many there are, then the arguments. 0 and 0: this thread does everything. Up to MOST_THREADS they are the numbers
# themselves: this is thread WHO − 1 of HOW_MANY.
WHO, HOW_MANY, FIRST_ARGUMENT = 2, 3, 4
MOST_THREADS = 4095  # no function lies on the first page
MOST_PLACES = 7  # that a sequence of kernels is given: the workspace, and tensors

# The table of a question, by position: the answer, and the objects that say yes and no; whatever else is answered is
# an object that was made for it. arrays.alike then has what each array looks like: its dtype, whether it is aligned and
# may be written, its rank, where its first byte and its end lie, from its place on; then the shape and strides of each.
ANSWER, YES, NO = range(3)
ARRAYS, ARRAY_TYPE, WRITTEN, LOOKS = range(3, 7)
LOOK = 5
ALIGNED_OR_WRITABLE = 0x0100 | 0x0400  # as numpy has these flags

# The table of tensors.compute, by position. Functions are there by address.
(
    LOOK_AT,  # what says where a tensor lies, and what makes one of memory that lies there: those of DLPack
    MAKE_TENSOR,
    ALLOCATE,
    FREE,
    UNLOCK,  # what drops Python's lock, and what takes it
    LOCK,
    COMPUTE,  # the entry of a kernel, and its block
    COMPUTE_BLOCK,
    CALL_METHOD,  # Python's: what calls a method, what reads a number, and what lets go of an object
    READ_NUMBER,
    LET_GO,
    STORAGE,  # methods: the storage of a tensor, then where one begins, and its bytes
    STORAGE_BEGIN,
    STORAGE_SIZE,
    TENSORS,  # how many it is given, and the bytes of their elements
    ITEM_SIZE,
    RESULT_SIZE,  # bytes of the result's elements; then its rank and dtype, as DLPack has them
    RESULT_KIND,
    RESULT_RANK,
    REACHES,  # bytes that each tensor needs, then the shape and strides of the result
) = range(3, 23)

TILE = 1024  # elements that are copied side by side before they are computed: three fit the smallest first-level cache
COLUMN_TILE = 128  # columns that sums.down_columns does together
CELL_TILE = 512  # columns that lstm_cell.backward does together
ADDITIONS = 16  # in a row, in sums

# What elu.backward is given as x. Falling: the forward's input, and exp is only asked for numbers below 0.
ELU_OF_INPUT, ELU_OF_RESULT, ELU_FALLING = range(3)

KINDS = 4  # of gates
BLOCK_ROWS = 288  # of a matrix that are multiplied with a panel together: a multiple of ROWS

# The table of lstm.time_loop and lstm.steps, by position.
(
    STEPS,
    SEQUENCES,
    DOWN,  # whether the last step comes first
    LAG,  # rounds by which the gates come before the matmul that takes what they made: 1 backwards, else 0
    PARALLEL,  # address of GOMP_parallel
    SOME,  # entry of lstm.steps, its block and threads
    SOME_BLOCK,
    SOME_THREADS,
    LOTS_APART,  # of sequences, which go through all steps without waiting for each other
    STEP,  # entry of matrix.step, its block and threads
    STEP_BLOCK,
    STEP_THREADS,
    GATES_BLOCK,
    MOVING_COUNT,
    AHEAD,  # how many steps come between two matmuls with the input
    AHEAD_ENTRY,  # of that matmul, 0 if there is none, its block and threads
    AHEAD_BLOCK,
    AHEAD_THREADS,
    INPUT,  # where it begins, and the bytes of a step
    INPUT_STRIDE,
    TABLE_SIZE,
) = range(21)

# What moves from round to round: where it begins, bytes, and what they are counted by, a clock. The first is what
# matrix.step multiplies, the others are arguments of the gates.
MOVING_WORDS = 3
NOW, DONE, NEXT, NTH, EVEN, ODD, CLOCKS = range(7)  # a step, those before and after it, which of AHEAD, two by turns

# Arguments of matrix.step and of matrix.matmul, by position.
STEP_A, STEP_FIRST, STEP_ROWS, STEP_SCRATCH, STEP_INPUT, STEP_LAST, STEP_PER_LOT, STEP_GATES = 0, 1, 2, 4, 5, 10, 17, 20
STEP_WORDS = 25  # of a block
MATMUL_A, MATMUL_ROWS = 0, 6

# Arguments of gates, by position. matrix.step says the first seven: sums, and of how many rows, rows, first and end,
# units, first and count, and whether there are sums. The loop says how many sequences take part in this step, and in
# the next; then comes what moves.
ACTIVE, KNOWN, MOVING = 7, 8, 9
GATES_WORDS = 36  # of a block, at most
KEEPS, KEEPS_FAR = 1, 2  # lists for the backward operator, which no cache would hold if they are far

NO_TAP = -(1 << 62)  # the place of a tap that is not there, and NO_PLACE above it with that of any channel added
NO_PLACE = -(1 << 61)

# Tiles of source.indirect: the rows of one, and how many terms of a sum are brought near at a time.
ROWS, DEPTH = 6, 256
NEAR = 400  # the same of convolutions
FAR_WEIGHTS = 1 << 18  # elements of a packed weight that no second cache keeps: it is written past it, and fetched

# The table of source.staging, by position: where a picture lies, and how a box of it is laid out. Axes are three.
(
    STAGE,  # the entry of staging.stage for the picture's elements; 0 if boxes are read where they lie
    CHANNELS,  # of a group, as they are laid out: one by one, or two as a pair
    SIZES,  # of the picture, by axis
    PICTURE_STRIDES,  # of the picture in memory: batch, channel, then by axis
    STRIDE,  # between positions of the picture that neighbours of a box meet first, by axis
    BEFORE,  # positions of padding before the picture, by axis
    REACH,  # positions that an output meets beyond the first, by axis
    LAID,  # strides of what is copied: batch, channel, then by axis
    MOVES,  # between neighbours of a box where they are read: batch, channel, then by axis
    PICTURE_CHANNELS,  # of a group, as they are in the picture
    PAIRED,  # which positions are, if any
    STAGE_SIZE,
) = (0, 1, 2, 5, 10, 13, 16, 19, 24, 29, 30, 31)
# A box, by position: where its first position lies in the batch and by axis, and its size; then the least numbers that
# were seen while pairs were brought for this one and those before, a vector.
SEEN, BOX = 8, 16
# Pairs of positions that are neighbours in a row: each of what taps meet, or those of a box themselves.
EVERY_POSITION, POSITIONS = 1, 2

# The table of the boxes of a convolution, by position: how large the whole is, and into how many boxes it is cut.
WHOLE, BOXES, GROUPS = 0, 4, 8

POSITIONS_TOGETHER = 288  # whose sums convolve.data keeps near, a multiple of ROWS and of the lanes of a vector
MOST_KINDS = 64  # of positions, by what they meet
MOST_PARTS = 16  # of the sums of convolve_weights

# The table of convolve.data and convolve_few.data, by position.
(
    SHARES,  # address of how many shares of the work there are, and where each begins: see source.shares
    PER_LOT,  # elements of a lot's scratch
    ROOM,  # elements of it for a staged box
    PLACES,  # elements of it for a list of places
    OUTPUTS,  # columns of a group's result: its channels, at one position or at all of a block
    TERMS,  # of a sum: channels and taps, or rows of gradWeight
    SPLITS,  # into how many parts the panels of the result are divided between threads
    CHAIN_LENGTH,
    PUT,  # the entry of results.put for the elements of the result, and the bytes of one
    PUT_SIZE,
    BLOCKS,  # into how many the sum is cut, and how many have one bit of a mask
    PER_BIT,
    BLOCKS_TOGETHER,  # neighbours that are added up before the result takes them
    REGROUPS,  # whether positions of one kind are made tiles of
    KINDS_OF,  # address of the kinds of positions, and of their masks; 0 if nothing is left out
    ADDS_BIAS,
    TOGETHER,  # positions whose sums are made before those of others
    PACKED_TERMS,  # of which elements of the picture are packed at a time; 0: none. Rows then end with how they lie
    PANELS_TOGETHER,  # whose sums are made block by block of terms, before those of others
    PANEL_TERMS,  # of a panel of the weight: those of all passes that are packed together, and where this one's begin
    FIRST_TERM,
    COPY,  # elements from a lot's own copy of the packed weight to the next lot's; 0 if there is one for all
    OUT_CHANNELS,  # of a group's result
    COLUMN_PLACES,  # address of where columns lie behind the first; 0 if they are channels
    WATCHES,  # whether it matters that an element of the result is not finite
    FETCHES_WEIGHTS,  # whether the weights to come are fetched while sums are made, and where these will be written
    FETCHES_RESULT,
    OUT_STRIDES,  # of the result in memory: batch, channel, then by axis
    DATA_TABLE,
) = (*range(28), 32)

# The table of convolve_weights, by position; the first ten are those above.
(
    PARTS,  # into how many the sum is cut that are joined in the end
    OUTER_ROOM,  # elements of a lot's scratch for a staged box of the other tensor
    COLUMNS_TOGETHER,  # of the other tensor that are packed before they are multiplied
    TILES_TOGETHER,  # with which they are multiplied, panel by panel
    PACKS_TILES,  # whether these are packed too; the list of rows then ends with how they lie
    IS_WATCHED,  # whether it matters that an element of the result is not finite
    OUTERMOST,  # by which axis positions come in order, before the batch: 1 or 2; 0 if the batch comes first
    LIMITS_OF,  # address of the first and the end of the positions along this axis that tiles meet
    WEIGHT_TABLE,
) = range(10, 19)
