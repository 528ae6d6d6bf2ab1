"""``stabilitykit baseline``: what is usual for a model, measured, as a pack that the breaker compares with."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from stabilitykit.cli.output import line, note, plain, record, table
from stabilitykit.cli.packs import pack_of
from stabilitykit.cli.probe.figures import nearest_rank
from stabilitykit.cli.recording import FilesArgument, KeepGoingOption, MapOption, Recording
from stabilitykit.engine.replay import Entry
from stabilitykit.errors import RecordError, UsageError
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.pack import Pack
from stabilitykit.turn import Turn

__all__ = ["SIGNALS", "baseline", "measured", "pack_text"]

SIGNALS = {"itl": "itl_ms", "ttft": "ttft_ms", "prefill": "prefill_ms"}
"""Detector of the pack `latency`, and the signal that it reads."""
_LEAST = 20
"""Values below which p90 is little more than the greatest (as `quantile` has it)."""
_FULL = 100
"""Values from which p99 is more than the greatest."""
_QUANTILES = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
_MARGIN = 1.2
"""Over p90 on three turns in a row (A4.4), and over p99, because a quantile of few turns is no sharp line."""
_MOST = 100.0
"""Greatest factor of the detector."""
_TAIL, _ROW = 3, 20
"""Turns beyond p99, of so many: with 1 % each 0.1 % (binomial)."""
Usual = Mapping[str, Sequence[float]]


def measured(entries: Iterable[Entry]) -> dict[str, Usual]:
    """Collect the times of answered turns, sorted, by model and detector.

    The first turn of each replica is left out: a server may load or compile before it answers.
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: {name: [] for name in SIGNALS})
    seen: set[tuple[str, str | None, str]] = set()
    for turn in entries:
        if not isinstance(turn, Turn) or turn.error not in (None, "none"):
            continue
        model = turn.model or ""
        if (key := (turn.tenant, turn.replica, model)) not in seen:
            seen.add(key)
            continue
        for name, signal in SIGNALS.items():
            value = getattr(turn, signal)
            if isinstance(value, int | float) and math.isfinite(value) and value > 0:
                found[model][name].append(float(value))
    return {model: {name: sorted(values) for name, values in usual.items()} for model, usual in found.items()}


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Give p50, p90 and p99 (nearest ranks), to four digits."""
    return {name: float(f"{nearest_rank(values, share):.4g}") for name, share in _QUANTILES.items()}


def pack_text(name: str, model: str, usual: Usual, chat: Pack) -> str:
    """Write the pack of one model.

    A turn is over above ``max(p50 (1 + tolerated), 1.2 p90)`` (A4.4): the factor of the detector says both. The rules
    on gaps ask for a factor of their own besides; that of the warning becomes the detector's, that of the critical one
    is never below it.

    Parameters
    ----------
    name
        Of the pack.
    usual
        Sorted values by detector, in ms; detectors with too few stay as they are.
    chat
        The pack it extends: what is tolerated over the median at least, and the factor of the critical rule.
    """
    kept = {detector: values for detector, values in usual.items() if len(values) >= _LEAST}
    told = {detector: quantiles(values) for detector, values in kept.items()}
    tolerated = {use.id: use.settings["drift_factor"] for use in chat.detectors if use.id in told}
    factors = {detector: _factor(tolerated[detector], q) for detector, q in told.items()}
    lines = [
        f"# Written by `stabilitykit baseline`: {_comment(model)}.",
        "stabilitykit: 1",
        f"pack: {name}",
        "desc: usual times as they were measured; the breaker compares with them instead of with a conversation's own",
        "extends: [chat]",
        "",
        "params:",
    ]
    for detector, values in kept.items():
        for quantile, value in told[detector].items():
            lines.append(f"  {detector}_{quantile}: {{default: {value!r} ms, doc: {_doc(quantile, values)}}}")
    if "itl" in factors:
        over = 1.0 + factors["itl"]
        critical = max(over, chat.params["itl_over"].value)
        lines.append(f"  itl_elevated: {{override: true, default: {over:.6g}, doc: {_THRESHOLD}}}")
        lines.append(f"  itl_over: {{override: true, default: {critical:.6g}, doc: as in the pack latency or more}}")
    lines += ["", "detectors:"]
    for detector, factor in factors.items():
        lines.append(
            f"  {detector}: {{override: true, method: static, baseline_ms: params.{detector}_p50, "
            f"drift_factor: {factor:.4g}}}"
        )
    lines += ["", "rules:"]
    for detector in told:
        lines.append(_RULE.format(name=detector, signal=SIGNALS[detector], tail=_TAIL, row=_ROW, margin=_MARGIN))
    return "\n".join(lines) + "\n"


_THRESHOLD = "ITL / median; the threshold of the detector itl"
_RULE = """\
  - rule: {name}-beyond-p99
    desc: {tail} of {row} turns lie a fifth beyond the measured p99; at 1 % each, of 1,000 rows of {row} one has so many
    when: {signal} > {margin} * params.{name}_p99
    severity: warning
    count: {{at_least: {tail}, in: {row} turns}}
    cooldown: {row} turns
    do: [{{emit_metric: {{name: {name}_beyond_p99}}}}]
    reason: "{{{{ {signal} | round(1) }}}} ms, tolerated {margin} times the p99 of {{{{ params.{name}_p99 }}}} ms"
    tags: [incubating, latency]"""


def _factor(tolerated: float, told: Mapping[str, float]) -> float:
    return float(f"{min(_MOST, max(tolerated, _MARGIN * told['p90'] / told['p50'] - 1.0)):.4g}")


def _doc(quantile: str, values: Sequence[float]) -> str:
    if quantile == "p99" and len(values) < _FULL:
        return f"the greatest of {len(values)} measured turns or close to it"
    return f"{quantile} of {len(values)} measured turns"


def _comment(model: str) -> str:
    return f"what is usual for {plain(model)[:200]}" if model else "what is usual"


def baseline(
    files: FilesArgument = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Pack to write (.yaml).")] = Path("baseline.yaml"),
    model: Annotated[str | None, typer.Option("--model", help="Only this one [all, a pack for each].")] = None,
    maps: MapOption = None,
    keep_going: KeepGoingOption = False,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Measure p50, p90 and p99 of first token, gaps and prefill for each model, and write them as a pack.

    The pack gives the breaker of `latency` a static baseline: it knows what is usual before a conversation has a past.
    """
    if output.suffix != ".yaml" or not output.parent.is_dir():
        raise UsageError(f"--output: a name that ends in .yaml in a folder that exists is wanted, not {output}")
    chat = pack_of(None)
    recording = Recording(files, maps, chat, keep_going=keep_going)
    found = measured(recording.entries())
    recording.report()
    if model is not None and model not in found:
        raise UsageError(f"--model: no turn of {model!r}; {did_you_mean(model, found) or ', '.join(sorted(found))}")
    chosen = {name: usual for name, usual in sorted(found.items()) if model in (None, name)}
    enough = {name: usual for name, usual in chosen.items() if any(len(v) >= _LEAST for v in usual.values())}
    for name in chosen.keys() - enough.keys():
        note(("left out ", "yellow"), f"{plain(name) or 'turns without a model'}: fewer than {_LEAST} answered turns")
    if not enough:
        raise RecordError(f"no model has {_LEAST} answered turns with a time of its first token, gaps or prefill")
    paths = {name: _path(output, name, is_alone=len(enough) == 1) for name in enough}
    for name, path in paths.items():
        path.write_text(pack_text(_id(path.stem), name, enough[name], chat), encoding="utf-8")
    _tell(enough, paths, is_json=is_json)


def _tell(found: Mapping[str, Usual], paths: Mapping[str, Path], *, is_json: bool) -> None:
    if is_json:
        told = {
            name: {SIGNALS[k]: {**quantiles(v), "count": len(v)} for k, v in usual.items() if len(v) >= _LEAST}
            for name, usual in found.items()
        }
        record({"models": told, "packs": {name: str(path) for name, path in paths.items()}})
        return
    rows = [
        (plain(name), SIGNALS[k], *(f"{q:,.4g} ms" for q in quantiles(v).values()), f"{len(v):,}")
        for name, usual in found.items()
        for k, v in usual.items()
        if len(v) >= _LEAST
    ]
    table(("model", "signal", "p50", "p90", "p99", "turns"), rows)
    for path in paths.values():
        line(f"wrote {path}: use it with --pack {path}")


def _path(output: Path, model: str, *, is_alone: bool) -> Path:
    return output if is_alone else output.with_name(f"{output.stem}-{_id(model)}.yaml")


def _id(text: str) -> str:
    """Make an id of the rule language from any text."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-")
    return words if words[:1].isalpha() else f"model-{words}".rstrip("-")
