"""The nearest valid name, for the hint of an error message."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["did_you_mean", "nearest"]

_LONGEST = 64
_MOST = 5_000


def _distance(a: str, b: str, limit: int) -> int:
    """Optimal string alignment distance, or ``limit + 1`` as soon as it is greater."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before: list[int] = []
    above = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            best = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        if min(row) > limit:
            return limit + 1
        before, above = above, row
    return above[-1]


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Give the candidate closest to `name` by edit distance, or "" when none is near.

    Near is at most ``max(2, len(name) // 3)`` edits (a swap of neighbours is one), but fewer
    edits than letters; of equals the alphabetically first wins. Differences of case count nothing.
    """
    if not name or len(name) > _LONGEST:
        return ""
    word = name.lower()
    limit = min(max(2, len(word) // 3), len(word) - 1)
    best, found = limit + 1, ""
    for candidate in sorted(candidates)[:_MOST]:
        d = _distance(word, candidate.lower(), min(limit, best))
        if d < best:
            best, found = d, candidate
    return found


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Give ``did you mean `x`?``, or "" when nothing is near."""
    found = nearest(name, candidates)
    return f"did you mean `{found}`?" if found else ""
