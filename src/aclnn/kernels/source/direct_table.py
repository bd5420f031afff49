"""The table that kernels/convolution/direct.py makes and source/direct.py reads, by position. Imports nothing.

Four axes come first, pictures, depth, height, width, each with these fields. A position of the base b stands for the
source's position b·STEP + ORIGIN + residue and for the target's b·OUT_STEP + OUT_ORIGIN + residue.
"""

from __future__ import annotations

(
    BASE,  # positions
    BLOCK,  # positions that are done together
    BLOCKS,
    EXTENT,  # of a plane of the stage: a block and as far as taps reach
    PITCH,  # elements of the stage from one position to the next
    SIZE,  # of the source
    STEP,
    ORIGIN,
    STRIDE,  # elements of the source's memory
    OUT_SIZE,
    OUT_STEP,
    OUT_ORIGIN,
    OUT_STRIDE,
    FIELDS,
) = range(14)
PICTURES, DEPTH, HEIGHT, WIDTH = range(0, 4 * FIELDS, FIELDS)  # where the fields of an axis begin

(
    GROUPS,
    SOURCES,  # channels of a group
    TARGETS,
    SOURCE_STRIDE,  # from channel to channel
    TARGET_STRIDE,
    WEIGHT_GROUP,  # from group to group in the weight, and from target to target
    WEIGHT_TARGET,
    BIAS_STRIDE,  # 0 if there is none
    HAS_BIAS,
    ROUNDS,  # 1 if float32 is rounded to HF32 first
    PARTS,  # that the blocks of a group's sums are cut into
    SLOTS,  # that items are dealt to, each with scratch of its own
    SLOT_SIZE,
    PLANE,  # elements of a plane of the stage
    STAGE,  # where in a slot its parts begin
    OUT,
    PACKED,
    RUN,
    COUNTER,
    PLANES,  # how many residues of the source there are, and where they stand: depth, height, width
    AT_PLANES,
    PHASES,  # the same for the target: depth, height, width, first tap, how many taps
    AT_PHASES,
    TAPS,  # how many there are for one target, of all sources and phases
    AT_OFFSETS,  # where in the stage a tap begins
    AT_WEIGHTS,  # where in the weight
    AT_LIMITS,  # base positions that meet something: first and end of depth, height, width
    HEADER,
) = range(4 * FIELDS, 4 * FIELDS + 28)

PHASE_FIELDS, LIMITS = 5, 6
SLACK = 128  # elements behind a plane that vectors may read
CHAIN = 32  # additions in a row: equal terms then err by a third of that, which (8 + √K)·u allows for any K
