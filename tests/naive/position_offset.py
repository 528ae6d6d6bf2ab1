"""The slow obvious twin of position_offset: the expected row is written out and subtracted."""

from __future__ import annotations

import math

import numpy as np

BITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
ONCE = {"f64": 5e-17, "f32": 2.7e-8, "f16": 2.3e-4, "bf16": 1.8e-3}


class NaivePositionOffset:
    """Compares the row with the row there should be."""

    def __init__(self, settings):
        self.settings = settings
        self.reset()

    def reset(self):
        """Forget what was dropped."""
        self.last = self.dropped = self.rotations = 0

    def update(self, inputs):
        """Take one turn."""
        row = inputs.get("positions") or []
        tokens, sent, cached, window = (
            inputs.get(k) for k in ("input_tokens", "sent_tokens", "cached_tokens", "window")
        )
        if tokens is not None:
            self.note_dropped(tokens, sent)
        elif row and cached is not None:
            tokens = cached + len(row)
        base = int(self.dropped) if self.settings["mode"] == "absolute" else 0
        offset = top = last = None
        if row:
            wanted = self.wanted(row, tokens, base)
            apart = [float(a) - float(b) for a, b in zip(row, wanted, strict=True)]
            offset = max(reversed(apart), key=abs)
            top, last = float(max(row)), float(wanted[-1])
        elif tokens is not None and tokens >= 1:
            top = last = float(int(tokens) - 1 + base)
        fixed = 0.0 if inputs.get("mla") else None
        if top is None:
            return {"offset": None, "is_over_window": None, "is_compensable": fixed, "phase_error": None}
        limit = self.settings["max_position"] if window is None else min(self.settings["max_position"], window)
        return {
            "offset": offset,
            "is_over_window": float(top >= limit),
            "is_compensable": float(last < limit) if fixed is None else fixed,
            "phase_error": self.phase(max(top, 0.0)),
        }

    def note_dropped(self, tokens, sent):
        """Learn how many tokens were dropped."""
        before = self.dropped
        if sent is not None:
            self.dropped = max(sent - tokens, 0)
        elif tokens < self.last:
            self.dropped += self.last - tokens
        self.rotations += self.dropped > before
        self.last = tokens

    def wanted(self, row, tokens, base):
        """Give the positions there should be."""
        if tokens is None:
            first = min(max(row[0], 0), 2**53)
            return [first + j for j in range(len(row))]
        start = max(int(tokens) - len(row), 0)
        kept = range(start, start + len(row))
        return [k if k < self.settings["n_sink"] else k + base for k in kept]

    def phase(self, top):
        """Bound the phase error at a position."""
        bits, dim = BITS[self.settings["dtype"]], self.settings["rotary_dim"]
        thetas = [self.settings["base"] ** (-2 * i / dim) for i in range(1, dim // 2)]
        error = 0.0
        if thetas:
            worst = 2.0**-54 if bits == 53 else max(abs(rounded(t, bits) - t) for t in thetas)
            error = top * (worst + thetas[0] * 2.0**-bits)
        if top > 2**bits:
            error += top * 2.0**-bits
        if self.settings["mode"] == "rerotate" and self.rotations:
            error += ONCE[self.settings["dtype"]] * self.rotations**0.76
        return min(error, math.pi)


def rounded(value, bits):
    """Round a float to float32 or bfloat16 by its bits."""
    pattern = int(np.float32(value).view(np.uint32))
    if bits > 8:
        return float(np.float32(value) if bits == 24 else np.float16(value))
    pattern = (pattern + 0x7FFF + (pattern >> 16 & 1)) >> 16 << 16
    return float(np.uint32(pattern).view(np.float32))
