"""``stabilitykit rollout report``: what two packs decided on the same kind of conversations, and whether it matters."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from stabilitykit.cli.output import fail, line, plain, record, table
from stabilitykit.rollout import CONTROL, TREATMENT, Report, read_report
from stabilitykit.rollout.report import Comparison

__all__ = ["app"]

app = typer.Typer(help="Shadow and A/B trials of a pack.", no_args_is_help=True, rich_markup_mode=None)
_STYLES = {"better": "green", "worse": "bold red"}


@app.callback()
def rollouts() -> None:
    """Shadow and A/B trials of a pack."""


@app.command("report")
def report_command(
    file: Annotated[Path, typer.Argument(help="The record that a Rollout wrote.")],
    alpha: Annotated[
        float, typer.Option("--alpha", min=1e-6, max=0.5, help="Risk of calling chance a difference.")
    ] = 0.05,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Compare the two arms of a rollout.

    Exit codes: 0 not worse, 1 the treatment is worse, 2 no record.
    """
    report = read_report(file, alpha=alpha)
    if is_json:
        record(_as_dict(report))
    else:
        _show(report)
    if report.verdict == "worse":
        fail(1)


def _show(report: Report) -> None:
    line(f"{report.mode}: {report.turns} turns of {_all_sessions(report)} conversations")
    rows = []
    for what, counted in _decided(report):
        rows.append((plain(what), *(f"{counted[arm]:g}" for arm in (CONTROL, TREATMENT))))
    table(("decided", CONTROL, TREATMENT), rows)
    if report.mode == "shadow":
        share = report.differing_turns / report.turns if report.turns else 0.0
        line(f"the packs differ on {report.differing_turns} turns ({share:.1%})")
        line(f"one acts in a conversation and the other never does: p = {report.paired_p:.3g} (McNemar, exact)")
    elif report.comparisons:
        table(
            ("outcome", CONTROL, TREATMENT, "difference [95 %]", "p (Holm)", "conversations an arm needs"),
            [_row(c) for c in report.comparisons],
        )
    if report.torn_lines:
        line(f"lines cut off by a crash or a full disk, not counted: {report.torn_lines}")
    line("verdict: ", (_said(report), _STYLES.get(report.verdict, "")))


def _decided(report: Report) -> list[tuple[str, dict[str, int]]]:
    arms = report.arms
    rows = [
        ("conversations", {arm: len(a.sessions) for arm, a in arms.items()}),
        ("turns", {arm: a.turns for arm, a in arms.items()}),
        ("conversations with an action", {arm: len(a.acted) for arm, a in arms.items()}),
        ("turns not ok", {arm: a.bad for arm, a in arms.items()}),
        ("turns not ok, with an action", {arm: a.bad_acted for arm, a in arms.items()}),
    ]
    for word, counters in (
        ("state", {arm: a.states for arm, a in arms.items()}),
        ("action", {arm: a.actions for arm, a in arms.items()}),
        ("carried out", {arm: a.applied for arm, a in arms.items()}),
    ):
        names = sorted(set().union(*counters.values()))
        rows += [(f"{word} {name}", {arm: counter[name] for arm, counter in counters.items()}) for name in names]
    return rows


def _row(c: Comparison) -> tuple[str, ...]:
    def form(value: float) -> str:
        return f"{value:.1%}" if c.kind == "share" else f"{value:.4g}"

    d = c.difference
    return (
        f"{plain(c.name)} ({c.kind})",
        f"{form(c.values[0])} of {c.sessions[0]}",
        f"{form(c.values[1])} of {c.sessions[1]}",
        f"{form(d.value)} [{form(d.low)}, {form(d.high)}]",
        f"{d.p:.3g} ({c.corrected_p:.3g})",
        f"{c.sessions_needed:.0f}" if math.isfinite(c.sessions_needed) else "-",
    )


def _said(report: Report) -> str:
    needed = next((c.sessions_needed for c in report.comparisons if math.isfinite(c.sessions_needed)), math.inf)
    hint = f"; a difference like the one seen needs {needed:.0f} conversations in each arm" if needed < math.inf else ""
    return {
        "better": "the treatment is better",
        "worse": "the treatment is worse",
        "shadow": "nobody acted on the shadow: try it on a share of conversations (ab) to see whether it helps",
        "no outcomes": "no outcomes are recorded in both arms",
    }.get(report.verdict, f"no difference shown{hint}")


def _all_sessions(report: Report) -> int:
    return len(set().union(*(arm.sessions for arm in report.arms.values())))


def _as_dict(report: Report) -> dict[str, Any]:
    return {
        "mode": report.mode,
        "turns": report.turns,
        "conversations": _all_sessions(report),
        "verdict": report.verdict,
        "alpha": report.alpha,
        "differing_turns": report.differing_turns,
        "torn_lines": report.torn_lines,
        "paired_p": _known(report.paired_p),
        "decided": dict(_decided(report)),
        "outcomes": [
            {
                "name": c.name,
                "kind": c.kind,
                **{
                    arm: {"sessions": c.sessions[k], "value": c.values[k]} for k, arm in enumerate((CONTROL, TREATMENT))
                },
                "difference": c.difference.value,
                "interval": [_known(c.difference.low), _known(c.difference.high)],
                "p": c.difference.p,
                "z_p": _known(c.z_p),
                "corrected_p": c.corrected_p,
                "sessions_needed": _known(c.sessions_needed),
            }
            for c in report.comparisons
        ],
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
