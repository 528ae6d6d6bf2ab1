"""A page for each detector, from its specification, its module's docstring and the shipped packs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from docs.tables import domain, table
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.pack import Node, Pack, Rule
from stabilitykit.rules.shipped import shipped_names
from stabilitykit.signals import DetectorSpec

SECTION = re.compile(r"^(\S[^\n]*)\n-{3,}\n", re.MULTILINE)
FOOTNOTE = re.compile(r"^\.\. \[(\d+)\] ", re.MULTILINE)


def overview() -> str:
    """Render the list of all detectors."""
    rows = [
        (f"[`{spec.type}`](detector-{spec.type}.md)", spec.doc, " ".join(f"`{o.name}`" for o in spec.outputs))
        for spec in DETECTORS.values()
    ]
    head = "# Detectors\n\nWhat needs memory or array maths; a threshold on a number the host has is a rule.\n\n"
    toc = "".join(f"detector-{spec.type}\n" for spec in DETECTORS.values())
    tree = f"\n```{{toctree}}\n:hidden:\n\n{toc}```\n"
    return head + table(("detector", "what it sees", "outputs"), rows) + tree


def pages() -> dict[str, str]:
    """Render one page for each detector, by file name."""
    return {f"detector-{spec.type}": "".join(page(spec)) for spec in DETECTORS.values()}


def page(spec: DetectorSpec) -> Iterator[str]:
    """Render the page of one detector."""
    sections = docstring(spec)
    yield f"# `{spec.type}`\n\n" + rst(sections.pop(""))
    yield "## In a pack\n\n" + _settings(spec) + "\n" + _outputs(spec) + "\n" + _notes(spec)
    for title, body in sections.items():
        yield f"## {title}\n\n" + rst(body)
    yield "## Rules of the shipped packs that use it\n\n" + _used(spec)


def docstring(spec: DetectorSpec) -> dict[str, str]:
    """Split a module's docstring into its sections; "" is what stands before the first."""
    text = inspect.getdoc(importlib.import_module(f"stabilitykit.detectors.{spec.type}")) or ""
    first, *rest = SECTION.split(text)
    return {"": first, **dict(zip(rest[::2], rest[1::2], strict=True))}


def rst(text: str) -> str:
    """Wrap reStructuredText for MyST; numbered references become a list."""
    return "```{eval-rst}\n" + FOOTNOTE.sub(r"\1. ", text.strip()) + "\n```\n\n"


def _settings(spec: DetectorSpec) -> str:
    inputs = [
        (f"`{name}`", "signal", f"`{signal}`" if signal else "required", "the signal it reads")
        for name, signal in spec.inputs.items()
    ]
    settings = [(f"`{s.name}`", s.unit, f"`{s.default}`", f"{s.doc} {domain(s)}".strip()) for s in spec.settings]
    return table(("setting", "unit", "default", "what it is"), inputs + settings)


def _outputs(spec: DetectorSpec) -> str:
    rows = [(f"`{o.name}`", o.unit, domain(o), o.doc) for o in spec.outputs]
    return table(("output", "unit", "domain", "what it is"), rows)


def _notes(spec: DetectorSpec) -> str:
    reactions = ", ".join(f"`{action}` {reaction}" for action, reaction in spec.on_applied.items())
    notes = [
        "Its memory belongs to one model of one session." if spec.model_bound else "",
        f"Its scope is `{spec.default_scope}` unless the pack says another." if spec.default_scope else "",
        f"A receipt of our own actions: {reactions}." if reactions else "",
    ]
    said = " ".join(filter(None, notes))
    return f"{said}\n\n" if said else ""


def _used(spec: DetectorSpec) -> str:
    rows = [
        (f"`{rule.id}`", f"`{pack.name}`", f"`{' '.join(rule.source.split())}`", rule.desc)
        for pack in _shipped()
        for rule in pack.rules
        if Path(rule.file).stem == pack.name and _reads(rule, pack, spec)
    ]
    return table(("rule", "pack", "when", "what it means"), rows) if rows else "None.\n"


@lru_cache
def _shipped() -> tuple[Pack, ...]:
    return tuple(load_pack(name, detectors=DETECTORS) for name in shipped_names())


def _reads(rule: Rule, pack: Pack, spec: DetectorSpec) -> bool:
    mine = {use.id for use in pack.detectors if use.spec.type == spec.type}
    return any(node.op == "out" and node.name.partition(".")[0] in mine for node in _nodes(rule.when))


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for argument in node.args:
        yield from _nodes(argument)
