"""Writes the reference tables from the code; conf.py calls it at each build of the documentation."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path

from docs import action_pages, detector_pages, metrics, patterns
from docs import errors as error_codes
from docs.tables import domain, table
from stabilitykit import errors
from stabilitykit.decision import FAULT_KINDS
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.files import keys
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.shipped import shipped_names
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources.logs import Template, shipped_templates


def signals() -> str:
    """Render the catalogue of signals."""
    rows = [(f"`{s.name}`", s.unit, s.scope, domain(s), s.doc) for s in CATALOGUE.values()]
    return (
        "# Signals\n\nWhat a host can measure. Outside its domain a value is *invalid*: unknown to rules, and listed "
        "in `decision.faults`. A pack may declare more.\n\n"
    ) + table(("signal", "unit", "scope", "domain", "what it is"), rows)


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


def keys_page() -> str:
    """Render every key of a pack file and of a case file."""
    head = "# Keys\n\nEvery key of a pack (`x.yaml`) and of its cases (`x.test.yaml`); anything else is an error.\n\n"
    return head + "\n".join(_keys(title, keyed) for title, keyed in KEY_TABLES.items())


def _keys(title: str, keyed: keys.Table) -> str:
    rows = [(f"`{name}`", "yes" if key.required else "", key.doc) for name, key in keyed.items()]
    return f"## {title}\n\n" + table(("key", "required", "what it holds"), rows)


KEY_TABLES: Mapping[str, keys.Table] = {
    "A pack": keys.PACK,
    "`defaults`": keys.DEFAULTS,
    "A param": keys.PARAM,
    "A signal": keys.SIGNAL,
    "A detector": keys.DETECTOR,
    "A rule": keys.RULE,
    "`count` of a rule": keys.COUNT,
    "`machine`": keys.MACHINE,
    "A state": keys.STATE,
    "A transition": keys.TRANSITION,
    "An action": keys.ACTION,
    "A parameter of an action": keys.ACTION_PARAM,
    "A file of cases": keys.CASE_FILE,
    "A case": keys.CASE,
    "An entry of `turns`, beside the signals": keys.STEP,
    "`observe`, beside the signals": keys.OBSERVE_FIELDS,
    "`expect`": keys.EXPECT,
}


def log_templates() -> str:
    """Render the shipped templates of log lines."""
    head = (
        "# Log templates\n\nLines of servers and drivers that are known, by family. The behaviour is what a line is "
        "evidence of; a line without one is ordinary, or yields signals whose series decides.\n\n"
    )
    parts, templates = [head], shipped_templates()
    for family in sorted({t.family for t in templates}):
        rows = [_log_template(t) for t in sorted(templates, key=lambda t: t.id) if t.family == family]
        columns = ("template", "what it says", "behaviour, dimension", "fields", "signals", "prior", "printed by")
        parts.append(f"## {family}\n\n" + table(columns, rows) + "\n")
    return "".join(parts).rstrip() + "\n"


def _log_template(t: Template) -> tuple[str, ...]:
    behaviours = ", ".join(f"`{name}`, {way.replace('_', ' ')}" for name, way in t.behaviours.items())
    fields = ", ".join(f"`{f.name}`" + ("" if f.name in t.required else "?") for f in t.fields)
    signals = ", ".join(f"`{name}`" for name in t.signals)
    return (f"`{t.id}`", t.desc, behaviours, fields, signals, f"{t.prior:g}", ", ".join(t.sources))


PAGES = {
    "signals": signals,
    "actions": action_pages.overview,
    "detectors": detector_pages.overview,
    "errors": failures,
    "packs": packs,
    "metrics": metrics.page,
    "patterns": patterns.page,
    "keys": keys_page,
    "error-codes": error_codes.page,
    "log-templates": log_templates,
}


def write(folder: Path) -> None:
    """Write every page, leaving an unchanged one alone so that Sphinx need not read it again."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {name: page() for name, page in PAGES.items()}
    for name, text in (pages | detector_pages.pages() | action_pages.pages()).items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
