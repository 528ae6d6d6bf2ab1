"""Numbers with their unit attached, as logs write them: ``1h24m39s``, ``184.26µs``, ``78.30 GiB``."""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["byte_count", "milliseconds"]

_NS = {"h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 1_000, "ns": 1}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|us|ns|s)\s*", re.ASCII)
_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B\Z", re.ASCII)
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def milliseconds(text: str) -> float:
    """Read a duration as Go and Rust print it.

    Parameters
    ----------
    text
        One or more numbers with ``h m s ms µs us ns``, added up.

    Returns
    -------
    float
        In ms, the float64 nearest to the exact value.

    Raises
    ------
    ValueError
        Anything else.

    Examples
    --------
    >>> milliseconds("1h24m39s"), milliseconds("184.26µs"), milliseconds("1.476533928s")
    (5079000.0, 0.18426, 1476.533928)
    """
    plain = text.strip().replace("µ", "u").replace("μ", "u")
    at, total = 0, Fraction(0)
    while at == 0 or at < len(plain):
        part = _TIME.match(plain, at)
        if part is None:
            raise ValueError("not a duration")
        total += Fraction(part[1]) * _NS[part[2]]
        at = part.end()
    return float(total / 10**6)


def byte_count(text: str) -> float:
    """Read a size: ``KiB MiB GiB TiB`` in powers of 1,024, ``kB MB GB TB`` in powers of 1,000.

    Raises
    ------
    ValueError
        Anything else.

    Examples
    --------
    >>> byte_count("10.830 MiB"), byte_count("2 GB"), byte_count("512B")
    (11356078.08, 2000000000.0, 512.0)
    """
    found = _BYTES.match(text.strip().replace("k", "K"))
    if found is None:
        raise ValueError("not a size")
    return float(Fraction(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2]])
