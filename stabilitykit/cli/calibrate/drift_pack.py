"""``stabilitykit calibrate drift``: a model file, and a pack with the rules that its data bear out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import attrs
import numpy as np
import typer

from stabilitykit.cli.calibrate.dialogues import Dialogue, read_dialogues
from stabilitykit.cli.calibrate.drift import fit_drift, held_out, labels_of
from stabilitykit.cli.calibrate.scoring import auc, f1, interval
from stabilitykit.cli.output import fail, line, note, record, table
from stabilitykit.errors import UsageError

__all__ = ["calibrate_drift", "judge", "pack_text"]

SEPARABLE = 0.55
"""A score whose area under the curve is not surely above this is refused: no threshold makes a rule of chance."""
_LEAST = 20
"""Dialogues that are wanted: fewer cannot be held out."""


@attrs.frozen
class Verdict:
    """How well one score finds boundaries, on dialogues held out; intervals are 95 %, over dialogues."""

    name: str
    auc: float
    low: float
    high: float
    f1: float | None = None

    @property
    def is_borne_out(self) -> bool:
        """Whether a rule may rest on it."""
        return self.low > SEPARABLE

    def __str__(self) -> str:
        found = f"AUC {self.auc:.3f} [{self.low:.3f}, {self.high:.3f}]"
        return found if self.f1 is None else f"{found}, F1 {self.f1:.3f}"


def judge(name: str, dialogues: Sequence[Dialogue], scores: Sequence[np.ndarray], *, has_limit: bool) -> Verdict:
    """Judge scores of all turns but the first of each dialogue.

    Parameters
    ----------
    has_limit
        Whether a score above 0 is a drift; a bare distance has no limit yet.
    """

    def area(drawn: Sequence[int] | np.ndarray) -> float:
        return auc(np.concatenate([dialogues[i].shift[1:] for i in drawn]), np.concatenate([scores[i] for i in drawn]))

    count = len(dialogues)
    found = f1(labels_of(dialogues), np.concatenate(scores) > 0) if has_limit else None
    return Verdict(name, area(range(count)), *interval(area, count), found)


def distances(dialogue: Dialogue) -> np.ndarray:
    """Give the cosine distance of each turn but the first to the one before."""
    return np.asarray(1 - (dialogue.vectors[1:] * dialogue.vectors[:-1]).sum(axis=1))


def pack_text(name: str, dialogues: Sequence[Dialogue], verdicts: Sequence[Verdict]) -> str:
    """Write the pack: params of `intent_drift`, and a rule on every score that is borne out."""
    within = np.concatenate([distances(d) for d in dialogues])[labels_of(dialogues) == 0]
    dim = dialogues[0].vectors.shape[1]
    refused = [
        f"#   no rule on the {v.name}: its AUC may be {SEPARABLE} or less" for v in verdicts if not v.is_borne_out
    ]
    borne = {v.name for v in verdicts if v.is_borne_out}
    return "\n".join(
        [
            "# Written by `stabilitykit calibrate drift`, for one embedding model. On dialogues held out:",
            *(f"#   {v.name}: {v}" for v in verdicts),
            *refused,
            "stabilitykit: 1",
            f"pack: {name}",
            "desc: where a conversation changes its topic, calibrated on labelled dialogues",
            "extends: [base]",
            "",
            "params:",
            f"  drift_mu0: {{default: {within.mean():.4f}, min: 0, max: 2, doc: mean distance inside a topic (A2.4)}}",
            f"  drift_s0: {{default: {max(within.std(), 1e-4):.4f}, min: 0.0001, max: 2, doc: its deviation (A2.4)}}",
            "  drift_n0: {default: 20, min: 1, max: 10000, doc: imagined distances (A2.4)}",
            "",
            *(["detectors:"] if borne else []),
            *([_DISTANCE.format(dim=dim)] if "distance" in borne else []),
            *([f"  probe: {{type: drift_probe, dim: {dim}, model: ./{name}.npz}}"] if "probe" in borne else []),
            *(["", "rules:"] if borne else []),
            *([_DISTANCE_RULE] if "distance" in borne else []),
            *([_PROBE_RULE] if "probe" in borne else []),
        ]
    ) + "\n"  # fmt: skip


_DISTANCE = """\
  drift:
    type: intent_drift
    dim: {dim}
    mu0: params.drift_mu0
    s0: params.drift_s0
    n0: params.drift_n0"""
_DISTANCE_RULE = """\
  - rule: topic-distance
    desc: the message is farther from the one before than messages of one topic are (A2.4)
    when: drift.is_drift
    severity: info
    cooldown: 5 turns
    do: [{inject_state_tokens: {format: compact}}]
    reason: "distance {{ drift.distance | round(3) }}, tolerated {{ drift.threshold | round(3) }}"
    tags: [incubating, intent]"""
_PROBE_RULE = """\
  - rule: topic-probe
    desc: the calibrated model takes the message for the first of another topic (A2.4)
    when: probe.is_drift
    severity: info
    cooldown: 5 turns
    do: [{inject_state_tokens: {format: compact}}]
    reason: "probability {{ probe.probability | round(2) }}, tolerated {{ probe.threshold | round(2) }}"
    tags: [incubating, intent]"""


def calibrate_drift(
    data: Annotated[Path, typer.Option("--data", help="Embeddings and labels of dialogues (.npz).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz); its pack goes beside.")],
    turns: Annotated[Path | None, typer.Option("--turns", help="The same dialogues' turns (JSON Lines).")] = None,
    label: Annotated[str, typer.Option("--label", help="Array of the boundaries.")] = "shift",
    only_user: Annotated[bool, typer.Option("--only-user", help="Only the user's messages are turns.")] = False,
    components: Annotated[
        bool,
        typer.Option(help="Weigh the embedding's components too: better on this kind of dialogue, worse on others."),
    ] = True,
    by_dialogue: Annotated[
        bool,
        typer.Option(
            "--by-dialogue", help="Choose the threshold for the mean F1 of dialogues, not the F1 of all turns."
        ),
    ] = False,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Fit `drift_probe` and the prior of `intent_drift` to labelled dialogues.

    Exit code 1 when a score does not tell boundaries from other turns: then it gets no rule.
    """
    if output.suffix != ".npz":
        raise UsageError("the model file must end in .npz")
    dialogues = [d for d in read_dialogues(data, turns, label=label, only_user=only_user) if len(d.vectors) > 1]
    if len(dialogues) < _LEAST or not 0 < labels_of(dialogues).sum() < len(labels_of(dialogues)):
        raise UsageError(f"{len(dialogues)} dialogues of two turns or more; {_LEAST} with boundaries are wanted")
    margins = held_out(dialogues, components=components, by_dialogue=by_dialogue)
    verdicts = [
        judge("distance", dialogues, [distances(d) for d in dialogues], has_limit=False),
        judge("probe", dialogues, margins, has_limit=True),
    ]
    model = fit_drift(dialogues, components=components, by_dialogue=by_dialogue).model
    np.savez(output, **{key: np.asarray(value, np.float32) for key, value in model.items()})  # type: ignore[arg-type]
    output.with_suffix(".yaml").write_text(pack_text(output.stem, dialogues, verdicts), encoding="utf-8")
    if is_json:
        record({v.name: {**attrs.asdict(v), "is_borne_out": v.is_borne_out} for v in verdicts})
    else:
        table(
            ("score", "on dialogues held out", ""),
            [(v.name, str(v), "rule" if v.is_borne_out else "refused") for v in verdicts],
        )
        line(f"wrote {output} and {output.with_suffix('.yaml').name}")
    if not all(v.is_borne_out for v in verdicts):
        note(f"an AUC that may be {SEPARABLE} or less is no ground for a rule: this embedding does not show boundaries")
        fail(1)
