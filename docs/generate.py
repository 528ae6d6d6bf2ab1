"""Writes the reference tables from the code; conf.py calls it at each build of the documentation."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from stabilitykit import errors
from stabilitykit.decision import ACTIONS, FAULT_KINDS, ParamSpec
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.shipped import shipped_names
from stabilitykit.signals import CATALOGUE, DetectorSpec, OutputSpec, SettingSpec, SignalSpec


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a Markdown table; a bar inside a cell is escaped."""
    lines = [list(head), ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def _number(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else ("-∞" if value < 0 else "∞")


def _domain(spec: SignalSpec | OutputSpec | SettingSpec | ParamSpec) -> str:
    words = getattr(spec, "values", ())
    if words:
        return " ".join(f"`{word}`" for word in words)
    if spec.kind in ("array", "bool", "word") or (spec.lo, spec.hi) == (-math.inf, math.inf):
        return ""
    return f"{_number(spec.lo)} … {_number(spec.hi)}"


def signals() -> str:
    """Render the catalogue of signals."""
    rows = [(f"`{s.name}`", s.unit, s.scope, _domain(s), s.doc) for s in CATALOGUE.values()]
    return (
        "# Signals\n\nWhat a host can measure. Outside its domain a value is *invalid*: unknown to rules, and listed "
        "in `decision.faults`. A pack may declare more.\n\n"
    ) + table(("signal", "unit", "scope", "domain", "what it is"), rows)


def actions() -> str:
    """Render the action table, in output order."""
    rows = []
    for a in sorted(ACTIONS.values(), key=lambda action: action.order):
        params = "; ".join(f"`{p.name}` = {p.default} ({p.doc})" for p in a.params)
        group = f"{a.group} {a.rank}" if a.group else ""
        rows.append((f"`{a.name}`", a.doc, params, group, "yes" if a.many else ""))
    return (
        "# Actions\n\nWhat a decision can tell the host to do, in the order to carry it out. Of one conflict group "
        "only the action of the lowest rank stays; the others are in `decision.suppressed`.\n\n"
    ) + table(("action", "what it asks for", "parameters and defaults", "group, rank", "several"), rows)


def _detector(spec: DetectorSpec) -> Iterator[str]:
    yield f"## `{spec.type}`\n\n{spec.doc}\n\n"
    inputs = [
        (f"`{name}`", "signal", f"`{signal}`" if signal else "required", "") for name, signal in spec.inputs.items()
    ]
    settings = [(f"`{s.name}`", s.unit, f"`{s.default}`", f"{s.doc} {_domain(s)}".strip()) for s in spec.settings]
    yield table(("setting", "unit", "default", "what it is"), inputs + settings)
    yield "\n" + table(
        ("output", "unit", "domain", "what it is"),
        [(f"`{o.name}`", o.unit, _domain(o), o.doc) for o in spec.outputs],
    )
    reactions = ", ".join(f"{action}: {reaction}" for action, reaction in spec.on_applied.items())
    notes = [
        "Memory belongs to (session, model)." if spec.model_bound else "",
        f"Scope by default: {spec.default_scope}." if spec.default_scope else "",
        f"After our own actions: {reactions}." if reactions else "",
    ]
    yield "\n" + " ".join(filter(None, notes)) + "\n\n"


def detectors() -> str:
    """Render every registered detector."""
    head = "# Detectors\n\nWhat needs memory or array maths; a threshold on a number the host has is a rule.\n\n"
    return head + "".join(text for spec in DETECTORS.values() for text in _detector(spec)).rstrip() + "\n"


def failures() -> str:
    """Render the exception tree and the kinds of faults."""
    tree = inspect.getdoc(errors) or ""
    rows = [(f"`{name}`", (inspect.getdoc(getattr(errors, name)) or "").splitlines()[0]) for name in errors.__all__]
    tree = inspect.cleandoc(tree.partition("::\n")[2].partition("\n\nBad")[0])
    kinds = ", ".join(f"`{kind}`" for kind in FAULT_KINDS)
    return (
        "# Errors and faults\n\nBad telemetry is never an exception: it becomes a `Fault` on the decision, of one of "
        f"the kinds {kinds}. Exceptions are for packs, foreign files and misuse:\n\n```text\n{tree}\n```\n\n"
    ) + table(("name", "what it is"), rows)


def packs() -> str:
    """Render the rules of the shipped packs."""
    parts = ["# Shipped packs\n\nThe rules each pack loads, those it extends included.\n\n"]
    for name in shipped_names():
        pack = load_pack(name, detectors=DETECTORS)
        parts.append(f"## {name}\n\n{pack.desc}\n\n")
        rows = [(f"`{r.id}`", r.severity, r.scope, f"`{' '.join(r.source.split())}`", r.desc) for r in pack.rules]
        parts.append(table(("rule", "severity", "scope", "when", "what it means"), rows) + "\n")
    return "".join(parts).rstrip() + "\n"


PAGES = {"signals": signals, "actions": actions, "detectors": detectors, "errors": failures, "packs": packs}


def write(folder: Path) -> None:
    """Write every page, leaving an unchanged one alone so that Sphinx need not read it again."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        path, text = folder / f"{name}.md", page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
