"""Where things stand in the int32 table of a program, and the bits of the pass's flags and result.

Shared by whoever writes the tables (``program``) and whoever reads them (the kernels).
"""

from __future__ import annotations

from stabilitykit.machine import MACHINE_HEADER
from stabilitykit.rules.tables import RULE_HEADER

# Fields of one scope's part of the int32 header.
(
    S_ACTIVE, S_IN, S_IN_END, S_KNOWN, S_DET, S_DET_END, S_WIDE, S_WIDE_END, S_BLOCK, S_BLOCK_SIZE,
    S_SAVED, S_EXPIRING, S_EXPIRING_END, S_RULE_F8, S_RULE_U8, S_MACHINE, S_OUT, S_DERIVED, S_DERIVED_END,
    S_PREVIOUS, S_TIME,
) = range(21)  # fmt: skip
S_RULES = 21
S_GUARDS = S_RULES + RULE_HEADER
SCOPE_HEADER = S_GUARDS + MACHINE_HEADER
# Fields after the three scopes.
G_INPUT = 3 * SCOPE_HEADER
(
    G_INPUTS, G_WORDS, G_DOMAIN, G_DERIVED, G_DETECTORS, G_ARRAYS, G_KINDS, G_COPY, G_COPY_SIZE, G_CONTENT
) = range(G_INPUT + 1, G_INPUT + 11)  # fmt: skip
"""Of G_INPUTS inputs the first G_CONTENT are signals; times that detectors read come behind them."""
HEADER = G_INPUT + 11
RULED = 2
"""Value of S_ACTIVE where the scope has a machine; 1 where others only read it."""
K_FLOATS, K_LOGS, K_INTEGERS = 0, 1, 2
"""Kinds of arrays: floats, logarithms (minus infinity is a value), integers."""
INPUT_FIELDS, DERIVED_FIELDS, DETECTOR_FIELDS = 3, 5, 9
"""An input: slot, memory of its unit watch (or -1), is it reported. A derived signal: kind, target,
three operands. A detector: kernel, float64, uint32, uint16, vector, configuration and io offsets,
first output slot, number of outputs."""

# The control words (int64): what kind of call this is.
C_FLAGS, C_SKIP, C_REVISION = 0, 1, 2
CONTROL_WORDS = 3
F_TURN, F_MAY_REPLICA, F_MAY_DEVICE, F_REPLICA, F_DEVICE = 1, 2, 4, 8, 16
F_REPLICA_OLD, F_DEVICE_OLD, F_COMPARE, F_REWRITTEN = 32, 64, 128, 256
F_REPLICA_LATE, F_DEVICE_LATE = 512, 1024
"""OLD: the stored sample no longer counts. LATE: the one that this turn brings would not."""

# Bits of the result above the session's machine word.
B_FAULT, B_REPLICA, B_DEVICE, B_STALE, B_MATCHED = 1 << 17, 1 << 18, 1 << 19, 1 << 20, 1 << 21

FIXED = ("i8", "f8", "f8", "i4", "f8", "u8", "i4", "f8", "u8", "i8", "pf4", "pi8", "i8")
"""Kinds of the blocks of ``run_pass`` that belong to a generation: ctl to n."""
ARGUMENTS = (*FIXED, "f8", "f4", "f8", "f4", "f8", "f4")
"""Kind of each block of ``run_pass``, in order."""
