"""Do more keys share a bucket than chance explains? A z-score against the closed form.

A share of keys that collide means nothing without the load: 85 % are normal at 6.7 keys a bucket, and
alarming at 0.1 (formulas B1.2). So the share is compared with what n keys thrown evenly into m buckets give:
``expected_rate`` and, in deviations, ``z``. Above 6 chance is no explanation, unless only a few pairs are
expected at all: there a single collision may stand 6 deviations out once in a hundred windows. Three windows
in a row (``for: 3 samples``) are none of that.

Inputs
------
keys, buckets, occupied
    Distinct keys inserted in a window, buckets of the table, buckets that hold at least one key. Fewer than 8
    keys say nothing; numbers that cannot be (more buckets occupied than keys or buckets) are unknown.

When not to use it
------------------
On a table that removes keys within the window, or that moves them (open addressing counts
its probes, which is another distribution).

References
----------
.. [1] N. L. Johnson, S. Kotz, "Urn models and their application", 1977 (occupancy).
.. [2] S. A. Crosby, D. S. Wallach, "Denial of service via algorithmic complexity attacks", USENIX Security 2003.

Examples
--------
1,000 keys in 4,096 buckets: 888 buckets are usual, 700 are not.

>>> from stabilitykit.detectors.hash_collisions import HASH_COLLISIONS
>>> from stabilitykit.detectors.trace import trace
>>> rows = [{"keys": 1000, "buckets": 4096, "occupied": k} for k in (888, 880, 700)]
>>> turns = trace(HASH_COLLISIONS, rows)
>>> [out["is_over"] for out in turns]
[0.0, 0.0, 1.0]
>>> {name: round(value, 3) for name, value in turns[2].items()}
{'rate': 0.3, 'expected_rate': 0.113, 'z': 20.774, 'is_over': 1.0}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from stabilitykit.kernels import kernel
from stabilitykit.kernels.birthday import collision_z, expected_collisions
from stabilitykit.kernels.guard import GUARD
from stabilitykit.kernels.pointers import Block
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

__all__ = ["HASH_COLLISIONS", "LEAST_KEYS", "hash_collisions_kernel", "hash_z"]

LEAST_KEYS = 8


@kernel
def hash_z(keys: float, buckets: float, occupied: float) -> float:
    """Give z, unknown when a number is unknown, too small or impossible."""
    fits = occupied >= 1.0 and occupied <= keys and occupied <= buckets
    if keys >= LEAST_KEYS and buckets >= 1.0 and fits:
        return collision_z(keys, buckets, occupied)
    return math.nan


@kernel
def hash_collisions_kernel(
    x: Block, f: Block, h: Block, w: Block, v: Block, c: Block, io: Block, arr: Block, ids: Block, n: Block
) -> int:
    """Compare one window with chance; c is ``z_limit``."""
    keys = float(x[io[0]])
    buckets = float(x[io[1]])
    occupied = float(x[io[2]])
    out = io[3]
    z = hash_z(keys, buckets, occupied)
    if math.isnan(z):
        for k in range(4):
            x[out + k] = math.nan
        return 0
    x[out] = 1.0 - occupied / keys
    x[out + 1] = expected_collisions(keys, buckets) / keys
    x[out + 2] = z
    x[out + 3] = 1.0 if z > float(c[0]) * (1.0 + GUARD) else 0.0
    return 0


def _layout(settings: Mapping[str, Any]) -> Layout:
    return Layout()


def _config(settings: Mapping[str, Any]) -> tuple[float, ...]:
    return (settings["z_limit"],)


HASH_COLLISIONS = DetectorSpec(
    type="hash_collisions",
    doc="keys that share a bucket, against the closed form of even hashing",
    inputs={"keys": "hash_keys_count", "buckets": "hash_buckets_count", "occupied": "hash_occupied_count"},
    settings=(SettingSpec("z_limit", 6.0, "deviations above the mean; the source of 6 is B1.2", lo=0.0, hi=1e6),),
    outputs=(
        OutputSpec("rate", "ratio", "keys that found their bucket taken / keys", lo=0.0, hi=1.0),
        OutputSpec("expected_rate", "ratio", "the same by chance alone", lo=0.0, hi=1.0),
        OutputSpec("z", "ratio", "deviations of the first from the second"),
        OutputSpec("is_over", "bool", "z is above its limit", kind="bool", lo=0.0, hi=1.0),
    ),
    kernel=hash_collisions_kernel,
    layout=_layout,
    config=_config,
)
"""See the module. It keeps no memory: a window of keys is counted by whoever sees the table."""
