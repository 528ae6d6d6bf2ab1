"""``stabilitykit calibrate drift``: a model file, and a pack with the rules that its data bear out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import attrs
import numpy as np
import typer

from stabilitykit.cli.calibrate.dialogues import Dialogue, read_dialogues
from stabilitykit.cli.calibrate.drift import fit_drift, held_out, labels_of, limit_of, logits
from stabilitykit.cli.calibrate.joints import SHARE, fit_joints, held_out_joints
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


@attrs.frozen(eq=False)
class Calibration:
    """What a pack is written from.

    Parameters
    ----------
    dialogues
        With the boundaries that were told, or that the model finds.
    model
        Arrays of its file.
    verdicts
        On the distance and on the probe.
    ground
        What the model was learned from.
    held_out
        What the verdicts were measured on.
    """

    dialogues: Sequence[Dialogue]
    model: dict[str, np.ndarray]
    verdicts: Sequence[Verdict]
    ground: str
    held_out: str


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


def by_labels(dialogues: Sequence[Dialogue], *, components: bool, by_dialogue: bool) -> Calibration:
    """Fit to the boundaries that the dialogues' file tells."""
    margins = held_out(dialogues, components=components, by_dialogue=by_dialogue)
    verdicts = [
        judge("distance", dialogues, [distances(d) for d in dialogues], has_limit=False),
        judge("probe", dialogues, margins, has_limit=True),
    ]
    model = fit_drift(dialogues, components=components, by_dialogue=by_dialogue).model
    return Calibration(dialogues, model, verdicts, "labelled dialogues", "dialogues held out")


def by_joints(dialogues: Sequence[Dialogue], *, components: bool, share: float) -> Calibration:
    """Fit to joints of the dialogues; what the model then finds in them is kept out of the prior."""
    made, scores = held_out_joints(dialogues, components=components)
    verdicts = [
        judge("distance", made, [distances(d) for d in made], has_limit=False),
        judge("probe", made, scores, has_limit=False),
    ]
    model = fit_joints(dialogues, components=components, share=share).model
    found = [attrs.evolve(d, shift=np.r_[0, logits(model, d) > limit_of(model)].astype(np.int64)) for d in dialogues]
    return Calibration(found, model, verdicts, "joints of dialogues without labels", "joints of dialogues held out")


def pack_text(name: str, made: Calibration) -> str:
    """Write the pack: params of `intent_drift`, and a rule on every score that is borne out."""
    within = np.concatenate([distances(d) for d in made.dialogues])[labels_of(made.dialogues) == 0]
    dim = made.dialogues[0].vectors.shape[1]
    refused = [
        f"#   no rule on the {v.name}: its AUC may be {SEPARABLE} or less" for v in made.verdicts if not v.is_borne_out
    ]
    borne = {v.name for v in made.verdicts if v.is_borne_out}
    return "\n".join(
        [
            f"# Written by `stabilitykit calibrate drift`, for one embedding model. On {made.held_out}:",
            *(f"#   {v.name}: {v}" for v in made.verdicts),
            *refused,
            "stabilitykit: 1",
            f"pack: {name}",
            f"desc: where a conversation changes its topic, calibrated on {made.ground}",
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
    data: Annotated[Path, typer.Option("--data", help="Embeddings of dialogues, with labels or without (.npz).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz); its pack goes beside.")],
    turns: Annotated[Path | None, typer.Option("--turns", help="The same dialogues' turns (JSON Lines).")] = None,
    label: Annotated[str | None, typer.Option("--label", help="Array of the boundaries [shift].")] = None,
    without_labels: Annotated[
        bool, typer.Option("--without-labels", help="Learn from joined dialogues, as when the file has no boundaries.")
    ] = False,
    share: Annotated[
        float | None,
        typer.Option(min=0.001, max=0.9, help=f"Without labels: share of the turns to take for boundaries [{SHARE}]."),
    ] = None,
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
    """Fit `drift_probe` and the prior of `intent_drift` to dialogues, labelled or not.

    Exit code 1 when a score does not tell boundaries from other turns: then it gets no rule.
    """
    if output.suffix != ".npz":
        raise UsageError("the model file must end in .npz")
    read = read_dialogues(data, turns, label=label or "shift", only_user=only_user)
    dialogues = [d for d in read if len(d.vectors) > 1]
    is_labelled = not without_labels and any(labels_of(dialogues)) if dialogues else False
    _check(dialogues, is_labelled, label=None if without_labels else label, share=share, by_dialogue=by_dialogue)
    if is_labelled:
        made = by_labels(dialogues, components=components, by_dialogue=by_dialogue)
    else:
        made = by_joints(dialogues, components=components, share=share or SHARE)
    verdicts = made.verdicts
    np.savez(output, **{key: np.asarray(value, np.float32) for key, value in made.model.items()})  # type: ignore[arg-type]
    output.with_suffix(".yaml").write_text(pack_text(output.stem, made), encoding="utf-8")
    if is_json:
        said = {v.name: {**attrs.asdict(v), "is_borne_out": v.is_borne_out} for v in verdicts}
        record({**said, "is_labelled": is_labelled})
    else:
        table(
            ("score", f"on {made.held_out}", ""),
            [(v.name, str(v), "rule" if v.is_borne_out else "refused") for v in verdicts],
        )
        line(f"learned from {made.ground}")
        line(f"wrote {output} and {output.with_suffix('.yaml').name}")
    if not all(v.is_borne_out for v in verdicts):
        note(f"an AUC that may be {SEPARABLE} or less is no ground for a rule: this embedding does not show boundaries")
        fail(1)


def _check(
    dialogues: Sequence[Dialogue], is_labelled: bool, *, label: str | None, share: float | None, by_dialogue: bool
) -> None:
    """Refuse what cannot be fitted, and options that would do nothing."""
    if len(dialogues) < _LEAST or (is_labelled and all(labels_of(dialogues))):
        raise UsageError(f"{len(dialogues)} dialogues of two turns or more; {_LEAST} with boundaries are wanted")
    if label is not None and not is_labelled:
        raise UsageError(f"no boundary in {label!r}; without --label the dialogues are taken to have no labels")
    if is_labelled and share is not None:
        raise UsageError("--share is for dialogues without labels (--without-labels)")
    if not is_labelled and by_dialogue:
        raise UsageError("--by-dialogue needs labels")
