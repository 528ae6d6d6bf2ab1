"""Importing the library against importing its core packages without numba."""

from __future__ import annotations

from benchmarks.measure import Figure, significant
from benchmarks.processes import cpu_times

OURS = "import sys, stabilitykit\nfrom stabilitykit import Engine, Turn\nassert 'numba' not in sys.modules"
THEIRS = "import attrs, jinja2, numpy, pydantic, structlog, yaml"


def run() -> list[Figure]:
    bare, ours, theirs = cpu_times([("", {}), (OURS, {}), (THEIRS, {})], 9)
    note = f"{ours * 1e3:.0f} ms against {theirs * 1e3:.0f} ms; a bare interpreter {bare * 1e3:.0f} ms"
    return [Figure("import_time", "import stabilitykit / its core packages", significant(ours / theirs), 1.15, note)]
