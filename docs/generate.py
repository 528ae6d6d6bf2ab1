"""Writes the reference tables from the code; conf.py calls it at each build of the documentation."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path

from docs import detector_pages
from docs import errors as error_codes
from docs.tables import domain, table
from stabilitykit import errors
from stabilitykit.decision import ACTIONS, FAULT_KINDS
from stabilitykit.detectors import DETECTORS
from stabilitykit.rules.files import keys
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.shipped import shipped_names
from stabilitykit.signals import CATALOGUE


def signals() -> str:
    """Render the catalogue of signals."""
    rows = [(f"`{s.name}`", s.unit, s.scope, domain(s), s.doc) for s in CATALOGUE.values()]
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
PAGES = {
    "signals": signals,
    "actions": actions,
    "detectors": detector_pages.overview,
    "errors": failures,
    "packs": packs,
    "keys": keys_page,
    "error-codes": error_codes.page,
}


def write(folder: Path) -> None:
    """Write every page, leaving an unchanged one alone so that Sphinx need not read it again."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {name: page() for name, page in PAGES.items()}
    for name, text in (pages | detector_pages.pages()).items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
