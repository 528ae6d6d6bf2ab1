"""The slow obvious twin of snapshot_drift: a matrix of hyperplanes, a product, bits compared one by one."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np


def mixed(word):
    """Mix 32 bits as the hash named in the kernel's references does."""
    word = ((word ^ word >> 16) * 0x7FEB352D) % 2**32
    word = ((word ^ word >> 15) * 0x846CA68B) % 2**32
    return word ^ word >> 16


@lru_cache(maxsize=4096)
def number(k):
    """Give number k of the pool: eight bytes of two hashes, added, less their mean."""
    words = mixed(k * 0x9E3779B1 % 2**32), mixed((k * 0x9E3779B1 + 0x85EBCA77) % 2**32)
    return sum(word >> shift & 255 for word in words for shift in (0, 8, 16, 24)) - 1020


def signature(vector, bits):
    """Give the bits as booleans."""
    signs = [-1 if mixed(i) % 2 else 1 for i in range(len(vector))]
    planes = [[sign * number(k + i % 4096) for i, sign in enumerate(signs)] for k in range(bits)]
    return [math.fsum(a * float(x) for a, x in zip(plane, vector, strict=True)) > 0 for plane in planes]


class NaiveSnapshotDrift:
    """One snapshot at a time."""

    def __init__(self, settings):
        self.settings = settings
        self.reset()

    def reset(self):
        """Forget the last snapshot."""
        self.kept = self.width = None

    def update(self, inputs):
        """Take one turn."""
        out = dict.fromkeys(("similarity", "worst_similarity", "worst_layer", "version"))
        given, layers = inputs.get("input"), self.settings["layers"]
        if given is None or len(given) == 0 or len(given) % layers:
            return out
        vectors = np.array(given, np.float32).astype(np.float64).reshape(layers, -1)
        if not (np.isfinite(vectors).all() and (np.square(vectors).sum(axis=1) > 0).all()):
            return out
        bits = self.settings["bits"] // 32 * 32
        before, width = self.kept, self.width
        self.kept, self.width = [signature(v, bits) for v in vectors], vectors.shape[1]
        out["version"] = 1
        if before is None or width != self.width:
            return out
        differing = [sum(a != b for a, b in zip(x, y, strict=True)) for x, y in zip(before, self.kept, strict=True)]
        found = [math.cos(math.pi * d / bits) for d in differing]
        worst = differing.index(max(differing))
        similarity = {"any": min(found), "majority": sorted(found)[layers // 2], "mean": sum(found) / layers}
        chosen = similarity[self.settings["decision"]]
        return out | {"similarity": chosen, "worst_similarity": found[worst], "worst_layer": worst}
