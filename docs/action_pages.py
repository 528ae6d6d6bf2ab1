"""The table of actions, the table of conflicts made from it, and a page for each action."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from docs.tables import domain, table
from stabilitykit.actions import ACTIONS, GROUPS, ActionSpec
from stabilitykit.detectors import DETECTORS
from stabilitykit.integrations.adapters import ADAPTERS
from stabilitykit.mitigations.applying import APPLIERS
from stabilitykit.mitigations.directives import MITIGATIONS
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.pack import Pack
from stabilitykit.rules.shipped import shipped_names

HOW_TO = Path(__file__).parent / "how-to"


def overview() -> str:
    """Render the action table, in output order, and the conflicts."""
    rows = []
    for spec in ACTIONS.values():
        params = "; ".join(f"`{p.name}` = {p.default} ({p.doc})" for p in spec.params)
        rows.append((f"[`{spec.name}`](action-{spec.name}.md)", spec.doc, params, "yes" if spec.many else ""))
    head = (
        "# Actions\n\nWhat a decision can ask of the host, in the order to carry it out: what is refused before what "
        "is answered, a rewrite of the context before what stands on it, blocks evicted before others are moved or "
        "stored in fewer bits.\n\n"
    )
    rules = (
        "\n## Conflicts\n\nThe whole table: what is not in it stands beside each other. Of a group only the best that "
        "was asked for stays, whoever asked; the others are in `decision.suppressed` with the winner. Of two with one "
        "name and different parameters the earlier stays, unless several may.\n\n"
    )
    tree = "".join(f"action-{name}\n" for name in ACTIONS)
    return (
        head
        + table(("action", "what it asks for", "parameters and defaults", "several"), rows)
        + rules
        + table(("stays", "instead of", "because"), conflicts())
        + f"\n```{{toctree}}\n:hidden:\n\n{tree}```\n"
    )


def conflicts() -> Iterator[tuple[str, str, str]]:
    """Give each action that removes others, those, and why."""
    for group, why in GROUPS.items():
        members = sorted((s for s in ACTIONS.values() if s.group == group), key=lambda s: s.rank)
        for k, spec in enumerate(members[:-1]):
            yield f"`{spec.name}`", " ".join(f"`{other.name}`" for other in members[k + 1 :]), why
    for spec in ACTIONS.values():
        if spec.drops:
            dropped = " ".join(f"`{name}`" for name in spec.drops)
            yield f"`{spec.name}`", dropped, "what they would repair does not come from the old context any more"


def pages() -> dict[str, str]:
    """Render one page for each action, by file name."""
    return {f"action-{spec.name}": "".join(page(spec)) for spec in ACTIONS.values()}


def page(spec: ActionSpec) -> Iterator[str]:
    """Render the page of one action."""
    kind = MITIGATIONS[spec.name]
    yield f"# `{spec.name}`\n\n{inspect.getdoc(kind)}\n\n## Parameters\n\n"
    rows = [(f"`{p.name}`", p.unit, domain(p), f"`{p.default}`", p.doc) for p in spec.params]
    yield table(("parameter", "unit", "domain", "default", "what it is"), rows) if rows else "None.\n"
    example = json.dumps({"name": spec.name, "params": {p.name: p.default for p in spec.params}})
    yield (
        f"\nIn Python `stabilitykit.mitigations.directives.{kind.__name__}`; in JSON, as [the schema of "
        f"actions](../actions.schema.json) says it:\n\n```json\n{example}\n```\n\n## Conflicts\n\n{_conflicts(spec)}"
    )
    yield f"\n## Who carries it out\n\n{_adapter(spec)}"
    yield f"\n## Detectors that take note of its receipt\n\n{_noted(spec)}"
    yield f"\n## Rules and states of the shipped packs that ask for it\n\n{_asked(spec)}"


def _conflicts(spec: ActionSpec) -> str:
    rows = [row for row in conflicts() if f"`{spec.name}`" in (row[0], *row[1].split())]
    return table(("stays", "instead of", "because"), rows) if rows else "None.\n"


def _adapter(spec: ActionSpec) -> str:
    module, _, name = ADAPTERS[spec.name].partition(":")
    doc = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""
    way = "`decision.apply(messages)`, by " if spec.name in APPLIERS else ""
    said = f"{way}`{module}.{name}`: {doc.partition(chr(10) + chr(10))[0].replace('``', '`')}\n"
    named = re.compile(rf"`{spec.name}\b")
    shown = [path for path in sorted(HOW_TO.glob("*.md")) if named.search(path.read_text(encoding="utf-8"))]
    links = ", ".join(f"[{_title(path)}](../../how-to/{path.name})" for path in shown)
    return said + (f"\nSee {links}.\n" if links else "")


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _noted(spec: ActionSpec) -> str:
    rows = [
        (f"[`{d.type}`](detector-{d.type}.md)", d.on_applied[spec.name])
        for d in DETECTORS.values()
        if spec.name in d.on_applied
    ]
    return table(("detector", "what it does then"), rows) if rows else "None.\n"


def _asked(spec: ActionSpec) -> str:
    rows = []
    for pack in _shipped():
        for rule in pack.rules:
            if Path(rule.file).stem == pack.name and any(a.name == spec.name for a in rule.do):
                rows.append((f"`{rule.id}`", f"`{pack.name}`", rule.desc))
        for state in pack.states:
            if any(a.name == spec.name for a in (*state.do, *state.while_)):
                rows.append((f"state `{state.name}`", f"`{pack.name}`", ""))
    return table(("rule or state", "pack", "what it means"), rows) if rows else "None.\n"


@lru_cache
def _shipped() -> tuple[Pack, ...]:
    return tuple(load_pack(name, detectors=DETECTORS) for name in shipped_names())
