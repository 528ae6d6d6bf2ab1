"""The slow obvious twin of position_ids: each place and its reasons."""

from __future__ import annotations


class NaivePositionIds:
    """One row at a time."""

    def __init__(self, settings):
        self.settings = settings

    def reset(self):
        """Nothing is remembered."""

    def update(self, inputs):
        """Take one turn."""
        row, cache, gaps = (list(inputs.get(k) or []) for k in ("positions", "cache", "gaps"))
        if not row:
            return {"kind": None, "index": None, "violations_count": None}
        found = [(self.kind(row, cache, gaps, j), j) for j in range(len(row))]
        wrong: list[tuple[int, int | None]] = [(kind, j) for kind, j in found if kind]
        if cache and len(cache) != len(row):
            wrong = [(1, None), *wrong]
        kind, index = wrong[0] if wrong else (0, None)
        return {"kind": kind, "index": index, "violations_count": len(wrong)}

    def kind(self, row, cache, gaps, j):
        """Say what is wrong with a place."""
        if row[j] < 0:
            return 2
        if row[j] >= self.settings["max_position"]:
            return 3
        if j and j not in gaps and row[j] != row[j - 1] + 1:
            return 4 if row[j] == row[j - 1] else 5 if row[j] < row[j - 1] else 6
        return 7 if len(cache) == len(row) and cache[j] != row[j] else 0
