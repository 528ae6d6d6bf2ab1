"""``stabilitykit rules``: what a pack's rules are, and what may stand in one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from stabilitykit.cli import vocabulary
from stabilitykit.cli.output import SEVERITY_STYLES, line, record, table
from stabilitykit.cli.packs import PackOption, ParamOption, pack_of
from stabilitykit.errors import UsageError
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.pack import Pack, Rule
from stabilitykit.rules.reach import signals_read

__all__ = ["app"]

app = typer.Typer(
    help="What the rules of a pack are, and what may stand in one.", no_args_is_help=True, rich_markup_mode=None
)
app.command("actions")(vocabulary.actions)
app.command("detectors")(vocabulary.detectors)
app.command("params")(vocabulary.params)
app.command("codes")(vocabulary.codes)
_JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]


@app.command("ls")
def ls(pack: PackOption = None, params: ParamOption = None, is_json: _JsonOption = False) -> None:
    """List the rules of a pack."""
    loaded = pack_of(pack, params)
    if is_json:
        record({"pack": loaded.name, "rules": [_as_dict(loaded, rule) for rule in loaded.rules]})
        return
    rows = [
        (rule.id, (rule.severity, SEVERITY_STYLES[rule.severity]), rule.scope, _pace(rule), rule.desc or rule.source)
        for rule in loaded.rules
    ]
    table(("rule", "severity", "scope", "needs", "what it says"), rows)


@app.command("show")
def show(
    rule: Annotated[str, typer.Argument(help="Id of the rule.")],
    pack: PackOption = None,
    params: ParamOption = None,
    is_json: _JsonOption = False,
) -> None:
    """Show one rule: its condition, what it reads and does, and where it stands."""
    loaded = pack_of(pack, params)
    found = next((r for r in loaded.rules if r.id == rule), None)
    if found is None:
        hint = did_you_mean(rule, [r.id for r in loaded.rules]) or "`stabilitykit rules ls` lists them"
        raise UsageError(f"the pack {loaded.name} has no rule {rule!r}; {hint}")
    described = _as_dict(loaded, found)
    if is_json:
        record(described)
        return
    line((found.id, "bold"), "  ", (found.severity, SEVERITY_STYLES[found.severity]), f"  {found.scope}")
    for key, value in described.items():
        if key not in ("rule", "severity", "scope") and value not in ("", [], {}, None):
            line((f"  {key:<10} ", "dim"), _text(value))


def _pace(rule: Rule) -> str:
    what = "turns" if rule.scope == "session" else "samples"
    if rule.count:
        return f"{rule.count[0]} of {rule.count[1]} {what}"
    return f"{rule.for_turns} {what} in a row" if rule.for_turns > 1 else f"1 {what[:-1]}"


def _as_dict(pack: Pack, rule: Rule) -> dict[str, Any]:
    detectors = {d.id: d for d in pack.detectors}
    what = "turns" if rule.scope == "session" else "samples"
    return {
        "rule": rule.id,
        "severity": rule.severity,
        "scope": rule.scope,
        "desc": rule.desc,
        "when": rule.source,
        "needs": _pace(rule),
        "keep_for": rule.keep_for or None,
        "cooldown": rule.cooldown or None,
        "missing": f"{rule.on_missing}" + (f", at most {rule.hold_limit} {what}" if rule.on_missing == "hold" else ""),
        "reads": sorted(signals_read(rule.when, detectors)),
        "do": [{"name": a.name, "params": dict(a.params)} for a in rule.do],
        "reason": rule.reason,
        "tags": list(rule.tags),
        "file": f"{rule.file}:{rule.line}" if rule.file else "",
    }


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_text(v) for v in value)
    if isinstance(value, dict):
        return f"{value['name']}({', '.join(f'{k}={v}' for k, v in value['params'].items())})"
    return str(value)
