"""The nearest valid name, for the hint of an error message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from os.path import commonprefix

__all__ = ["did_you_mean", "nearest"]

_LONGEST = 64
_FARTHEST = 6
_MOST = 400
_MEASURED = 16


def _distance(a: str, b: str, limit: int) -> int:
    """Optimal string alignment distance, or ``limit + 1`` as soon as it is greater."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    above = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [limit + 1] * (len(b) + 1)
        row[0] = i
        # farther from the diagonal than the limit, nothing can be within it
        for j in range(max(1, i - limit), min(len(b), i + limit) + 1):
            y = b[j - 1]
            best = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, before[j - 2] + 1)
            row[j] = best
        if min(row) > limit:
            return limit + 1
        before, above = above, row
    return above[-1]


def _at_least(letters: Counter[str], length: int, other: str) -> int:
    """Give a lower bound of the distance: letters that the one has and the other lacks."""
    shared = sum(min(letters[x], other.count(x)) for x in set(other) if x in letters)
    return max(length, len(other)) - shared


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Give the candidate closest to `name` by edit distance, or "" when none is near.

    Near is at most ``max(2, len(name) // 3)`` edits (a swap of neighbours is one) and never more
    than six, but fewer edits than letters; of equals the alphabetically first wins. Differences of case count nothing.
    """
    if not name or len(name) > _LONGEST:
        return ""
    word = name.lower()
    limit = min(max(2, len(word) // 3), len(word) - 1, _FARTHEST)
    letters = Counter(word)
    alike = [c for c in candidates if abs(len(c) - len(word)) <= limit]
    if len(alike) > _MOST:
        # commonprefix compares characters, which is what is meant here
        alike = sorted(alike, key=lambda c: len(commonprefix((word, c))), reverse=True)[:_MOST]  # noqa: RUF071
    bounded = sorted((_at_least(letters, len(word), c.lower()), c) for c in alike)
    best, found = limit + 1, ""
    # Only the most promising are measured: long lists of long names cost time, not better hints.
    for bound, candidate in bounded[:_MEASURED]:
        if bound > min(limit, best):
            break
        d = _distance(word, candidate.lower(), min(limit, best))
        if d < best or (d == best and candidate < found):
            best, found = d, candidate
    return found


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Give ``did you mean `x`?``, or "" when nothing is near."""
    found = nearest(name, candidates)
    return f"did you mean `{found}`?" if found else ""
