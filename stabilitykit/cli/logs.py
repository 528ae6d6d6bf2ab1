"""``stabilitykit logs``: what the lines of a server's log say."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from stabilitykit.cli.output import line, note, plain, record
from stabilitykit.cli.packs import PackOption, ParamOption, engine_of
from stabilitykit.decision import Decision
from stabilitykit.engine import Engine
from stabilitykit.sample import Sample
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources.logs import (
    Counts,
    Line,
    Matcher,
    Series,
    blocks,
    read_blocks,
    read_templates,
    shipped_files,
)

__all__ = ["app"]

app = typer.Typer(help="What the lines of a server's log say.", no_args_is_help=True, rich_markup_mode=None)
_SHOWN = 200


@app.callback()
def group() -> None:
    """Keep `explain` a command of its own, although it is the only one so far."""


@app.command("explain")
def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A log, plain, .gz or .xz; - is stdin.")],
    templates: Annotated[
        list[Path] | None,
        typer.Option(
            "--templates", "-t", metavar="FILE", help="Templates of your own beside the shipped ones; repeatable."
        ),
    ] = None,
    pack: PackOption = None,
    params: ParamOption = None,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object a line on stdout.")] = False,
) -> None:
    """Print each line that holds something: template, fields, behaviours, confidence, and the rules that fire."""
    matcher = Matcher(read_templates([*shipped_files(), *(templates or ())]))
    engine = engine_of(pack or ["logs"], params)
    series, counts, seen = Series(), Counts(), Counter[str]()
    for found in _lines(matcher, file, counts):
        seen.update(list(found.behaviours))
        fired = _fired(engine, series.take(found))
        if is_json:
            record(_as_dict(found, fired))
        else:
            _print(found, fired)
    summary = {"lines": counts.lines, "cut": counts.cut, "behaviours": dict(sorted(seen.items()))}
    if is_json:
        record({"summary": summary})
    else:
        cut = f", {counts.cut} cut at 8 KiB" if counts.cut else ""
        told = ", ".join(f"{name} {many}" for name, many in seen.most_common()) or "none"
        note(f"{counts.lines:,} lines{cut}; behaviours: {told}")


def _lines(matcher: Matcher, file: Path, counts: Counts) -> Iterator[Line]:
    for block in blocks(sys.stdin.buffer, counts) if str(file) == "-" else read_blocks(file, counts):
        yield from matcher.scan(block)


def _fired(engine: Engine, sample: Sample | None) -> list[tuple[str, str]]:
    """Give (rule, reason) of what a sample makes fire."""
    if sample is None:
        return []
    known = {name: value for name, value in sample.signals.items() if name in CATALOGUE or name in engine.pack.signals}
    decision: Decision = engine.observe(replica=sample.replica, timestamp_s=sample.timestamp_s, **known)
    texts = {reason.rule: reason.text for reason in decision.reasons}
    return [(rule, texts.get(rule, "")) for rule in decision.fired]


def _print(found: Line, fired: list[tuple[str, str]]) -> None:
    joined = f" ({found.joined} lines joined)" if found.joined > 1 else ""
    text = found.text[:_SHOWN].decode("utf-8", "replace").strip()
    line((f"{found.number}", "bold"), joined, "  ", (plain(text), "dim"))
    for one in found.found:
        behaviours = ", ".join(f"{name} ({way})" for name, way in one.behaviours.items()) or "no behaviour by itself"
        fields = " ".join(f"{name}={_value(value)}" for name, value in one.fields.items())
        line("  ", (one.template.id, "cyan"), f"  {behaviours}  {one.confidence:.2f}  ", plain(fields))
    for rule, reason in fired:
        line("  ", ("-> " + rule, "yellow"), "  ", plain(reason))


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.12g}"


def _as_dict(found: Line, fired: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "line": found.number,
        "joined": found.joined,
        "text": found.text.decode("utf-8", "replace"),
        "behaviours": found.behaviours,
        "confidence": found.confidence,
        "found": [
            {
                "template": one.template.id,
                "family": one.template.family,
                "fields": dict(one.fields),
                "signals": [name for name in one.template.signals if name in one.fields],
                "behaviours": dict(one.behaviours),
                "confidence": one.confidence,
            }
            for one in found.found
        ],
        "fired": [{"rule": rule, "reason": reason} for rule, reason in fired],
    }
