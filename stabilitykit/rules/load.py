"""The door of the rule language: pack files in, a checked Pack out."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from stabilitykit.decision import ACTIONS, ActionSpec
from stabilitykit.rules.files.extends import Source, read_files
from stabilitykit.rules.files.locate import Findings
from stabilitykit.rules.files.merge import merge
from stabilitykit.rules.pack import Pack
from stabilitykit.rules.resolve import resolve
from stabilitykit.signals import CATALOGUE, DetectorSpec, SignalSpec

__all__ = ["load_pack"]


def load_pack(
    sources: Source | Sequence[Source],
    *,
    params: Mapping[str, Any] | None = None,
    detectors: Mapping[str, DetectorSpec],
    actions: Mapping[str, ActionSpec] = ACTIONS,
    signals: Mapping[str, SignalSpec] = CATALOGUE,
    root: Source | None = None,
) -> Pack:
    """Load packs and check everything about them.

    Parameters
    ----------
    sources
        A shipped pack's name, a path (contains ``/`` or ends in ``.yaml``), or a list of them:
        later files are laid over earlier ones, and the last one names the result.
    params
        Values for the packs' params: a plain number is in the unit of the default, a string is
        a literal.
    detectors, actions, signals
        What packs may use.
    root
        Folder that ``extends`` may not leave; by default the folder of the pack file.

    Returns
    -------
    Pack
        Resolved; equal fingerprints decide equally.

    Raises
    ------
    PackError
        With every problem found, located, by position, at most 50 of a file.
    """
    findings = Findings()
    with _collector_paused():
        files = read_files(findings, sources, root)
        if not files:
            findings.raise_all()
        pack = resolve(
            findings,
            files,
            merge(findings, files),
            overrides=params,
            specs=detectors,
            known_actions=actions,
            catalogue=signals,
        )
        findings.raise_all()
    return pack


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the cyclic collector out of a load: it finds nothing there, and takes a sixth of the time.

    What a load allocates is bounded by the limits of the reader. Of several threads that load at
    once the first that ends switches the collector on again, which costs time and harms nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
