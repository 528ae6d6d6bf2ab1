"""``stabilitykit calibrate intent``: a linear classifier of intents, run by `intent_churn`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import attrs
import numpy as np
import typer
from numpy.typing import NDArray

from stabilitykit.cli.calibrate.dialogues import Dialogue, read_dialogues
from stabilitykit.cli.calibrate.linear import fit_logistic
from stabilitykit.cli.calibrate.scoring import folds, interval
from stabilitykit.cli.output import fail, line, note, record
from stabilitykit.errors import UsageError

__all__ = ["Classifier", "calibrate_intent", "fit_intent", "held_out_intents", "labelled"]

Floats = NDArray[np.float64]
Names = NDArray[np.str_]

STRENGTHS = (3.0, 30.0, 300.0)
_LEAST_DIALOGUES = 20


@attrs.frozen(eq=False)
class Classifier:
    """softmax(weights u + bias) over the classes."""

    weights: Floats
    bias: Floats
    classes: tuple[str, ...]

    def probabilities(self, vectors: Floats) -> Floats:
        """Give float64[n, c] for float64[n, d] of length 1."""
        logits = vectors @ self.weights.T + self.bias
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def labelled(dialogues: Sequence[Dialogue]) -> tuple[Floats, Names, NDArray[np.int64]]:
    """Give vectors, intents and dialogues of the turns that have an intent."""
    picked = [
        (d.vectors[i], d.intent[i], k) for k, d in enumerate(dialogues) for i in range(len(d.vectors)) if d.intent[i]
    ]
    if not picked:
        raise UsageError("no turn has an intent")
    vectors, names, group = zip(*picked, strict=True)
    return np.array(vectors), np.array(names), np.array(group)


def fit_intent(
    vectors: Floats, names: Names, group: NDArray[np.int64], strengths: Sequence[float] = STRENGTHS
) -> Classifier:
    """Fit a classifier; its penalty is the one with the best accuracy on dialogues held out inside."""
    part = folds(int(group.max()) + 1, 3)[group]
    best = max(strengths, key=lambda s: _accuracy(vectors, names, part, s))
    return _fit(vectors, names, best)


def held_out_intents(
    vectors: Floats, names: Names, group: NDArray[np.int64], strengths: Sequence[float] = STRENGTHS
) -> tuple[Names, Floats]:
    """Give the likeliest intent and the entropy / ln C of each turn, by classifiers that did not see its dialogue."""
    part = folds(int(group.max()) + 1, 5)[group]
    found, ratio = np.empty_like(names), np.empty(len(names))
    for k in range(5):
        held = part == k
        model = fit_intent(vectors[~held], names[~held], group[~held], strengths)
        p = model.probabilities(vectors[held])
        found[held] = np.array(model.classes)[p.argmax(axis=1)]
        ratio[held] = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1) / np.log(len(model.classes))
    return found, ratio


def _fit(vectors: Floats, names: Names, strength: float) -> Classifier:
    weights, bias, classes = fit_logistic(vectors, names, strength)
    if len(classes) == 2:  # one row, the logit of the second
        weights, bias = np.vstack([0 * weights, weights]), np.append(0 * bias, bias)
    return Classifier(weights, bias, tuple(classes))


def _accuracy(vectors: Floats, names: Names, part: NDArray[np.int64], strength: float) -> float:
    right = 0
    for k in range(3):
        model = _fit(vectors[part != k], names[part != k], strength)
        right += int(
            (np.array(model.classes)[model.probabilities(vectors[part == k]).argmax(axis=1)] == names[part == k]).sum()
        )
    return right / len(names)


def calibrate_intent(
    data: Annotated[Path, typer.Option("--data", help="Embeddings of dialogues (.npz).")],
    turns: Annotated[Path, typer.Option("--turns", help="The same dialogues' turns, with `intent` (JSON Lines).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.npz).")],
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Fit a linear classifier of intents to labelled user messages.

    Exit code 1, and no file, when it does no better than the commonest intent.
    """
    if output.suffix != ".npz":
        raise UsageError("the model file must end in .npz")
    vectors, names, group = labelled(read_dialogues(data, turns, only_user=True))
    if len(set(group.tolist())) < _LEAST_DIALOGUES or len(set(names.tolist())) < 2:
        raise UsageError(f"{_LEAST_DIALOGUES} dialogues and two intents are wanted")
    right = held_out_intents(vectors, names, group)[0] == names
    members = [np.flatnonzero(group == k) for k in np.unique(group)]
    low, high = interval(lambda drawn: float(right[np.concatenate([members[i] for i in drawn])].mean()), len(members))
    common = float(np.unique(names, return_counts=True)[1].max() / len(names))
    is_borne_out = low > common
    if is_borne_out:
        model = fit_intent(vectors, names, group)
        weights, bias = model.weights.astype(np.float32), model.bias.astype(np.float32)
        np.savez(output, classes=np.array(model.classes), weights=weights, bias=bias)
    if is_json:
        record(
            {"accuracy": float(right.mean()), "low": low, "high": high, "commonest": common, "written": is_borne_out}
        )
    else:
        line(
            f"accuracy on dialogues held out {right.mean():.3f} [{low:.3f}, {high:.3f}], commonest intent {common:.3f}"
        )
    if not is_borne_out:
        note("no better than always naming the commonest intent: nothing was written")
        fail(1)
    if not is_json:
        line(f"wrote {output}")
