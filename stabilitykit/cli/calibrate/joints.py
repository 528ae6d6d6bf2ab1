"""Fitting `drift_probe` to a host's own dialogues without labels: where two of them were joined, the topic changes.

The beginning of one dialogue is put behind a piece of another, as pairs for next-sentence prediction are made. The
joint is a boundary that is known; the turns inside a piece are taken for none. Some of them are, so the model is fitted
in rounds (self-training with pseudo-labels): of the turns inside, those that the model itself takes most for
joints are left out of the next round, and the topmost few count as boundaries in it.

No label is looked at, and none tells where the probability is high enough: the threshold is the one that a given share
of the host's own turns is over.

References
----------
.. [1] D. Yarowsky, "Unsupervised word sense disambiguation rivaling supervised methods", ACL 1995: self-training.
.. [2] D.-H. Lee, "Pseudo-label", ICML workshop on representation learning, 2013.
.. [3] J. Devlin et al., "BERT", NAACL 2019: pairs of texts that follow each other, or were put together.
.. [4] L. Xing, G. Carenini, "Improving unsupervised dialogue topic segmentation with utterance-pair coherence
   scoring", SIGDIAL 2021: such pairs for the topics of dialogues.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.cli.calibrate.dialogues import Dialogue
from stabilitykit.cli.calibrate.drift import (
    Fit,
    centre_of,
    labels_of,
    logits,
    means_of,
    model_of,
    rows_of,
    scaled,
    threshold_of,
)
from stabilitykit.cli.calibrate.linear import fit_logistic
from stabilitykit.cli.calibrate.scoring import folds
from stabilitykit.mitigations.context.tokens import MESSAGE_TOKENS

__all__ = ["SHARE", "Rounds", "fit_joined", "fit_joints", "fit_rounds", "held_out_joints", "joined"]

Floats = NDArray[np.float64]
Piece = tuple[Dialogue, int, int]

SHARE = 0.2
"""Turns that begin another topic, of all but first ones, where nobody says how many do."""
_COUNT = 300
"""Joined dialogues that a model is fitted to."""
_PIECES = (2, 5)
_TURNS = (2, 9)
"""Pieces of a joined dialogue, and turns of a piece, from, and below."""


@attrs.frozen
class Rounds:
    """How a model is fitted to its own answers.

    Parameters
    ----------
    count
        Rounds after the first fit.
    left_out
        Share of the turns inside pieces, the most like joints, that is not taken for turns without a boundary.
    relabelled
        Share of the turns inside, the topmost, that counts as boundaries.
    strength
        Inverse of the L2 penalty.
    """

    count: int = 3
    left_out: float = 0.2
    relabelled: float = 0.05
    strength: float = 0.05


def joined(dialogues: Sequence[Dialogue], count: int, rng: np.random.Generator) -> list[Dialogue]:
    """Join a piece of a dialogue with the beginnings of one to three others, so many times.

    Returns
    -------
    list of Dialogue
        ``shift`` is 1 at the joints; the labels of ``dialogues`` are not looked at.
    """
    return [_join([_piece(dialogues, rng, k) for k in range(int(rng.integers(*_PIECES)))]) for _ in range(count)]


def _piece(dialogues: Sequence[Dialogue], rng: np.random.Generator, place: int) -> Piece:
    """Draw some turns in a row: the first piece from anywhere, the others from the beginning."""
    dialogue = dialogues[int(rng.integers(len(dialogues)))]
    turns = len(dialogue.shift)
    size = min(int(rng.integers(*_TURNS)), turns)
    start = int(rng.integers(turns - size + 1)) if place == 0 else 0
    return dialogue, start, start + size


def _join(pieces: Sequence[Piece]) -> Dialogue:
    def all_of(name: str) -> Floats:
        return np.concatenate([getattr(d, name)[start:stop] for d, start, stop in pieces])

    message, answer = all_of("message"), all_of("answer")
    shift = np.zeros(len(message), np.int64)
    places = np.cumsum([stop - start for _, start, stop in pieces])[:-1]
    # The first message of a dialogue has no answer before it. At a joint it has the one that the piece before got,
    # and what a chat template adds around it; otherwise the model would learn to see that instead of the topic.
    for at, (before, _, stop) in zip(places.tolist(), pieces, strict=False):
        shift[at] = 1
        answer[at] = before.answer[stop] if stop < len(before.answer) else np.nan
        message[at] += MESSAGE_TOKENS * bool((before.answer[1:] > 0).any())
    return Dialogue(all_of("vectors"), shift, message, answer, all_of("questions"))


def fit_joints(
    dialogues: Sequence[Dialogue],
    *,
    components: bool = True,
    share: float = SHARE,
    rounds: Rounds | None = None,
    seed: int = 0,
) -> Fit:
    """Fit a model to joints of these dialogues, and the threshold to these dialogues.

    Parameters
    ----------
    components
        Whether the embedding's components get weights, beside the features.
    share
        Share of the turns, but first ones, that is over the threshold.
    rounds
        How; the defaults of ``Rounds`` if None.
    """
    made = joined(dialogues, _COUNT, np.random.default_rng(seed))
    return fit_joined(made, dialogues, components=components, share=share, rounds=rounds)


def fit_joined(
    made: Sequence[Dialogue],
    dialogues: Sequence[Dialogue],
    *,
    components: bool = True,
    share: float = SHARE,
    rounds: Rounds | None = None,
) -> Fit:
    """Fit a model to dialogues that were joined, ``made``, of ``dialogues``; see ``fit_joints``."""
    rounds = rounds or Rounds()
    centre = centre_of(made)
    x = np.concatenate([rows_of(d, centre, components) for d in made])
    means = means_of(x)
    x, spread = scaled(x, means)
    weights, bias = fit_rounds(x, labels_of(made), rounds)
    model = model_of(weights, bias, 0.0, means, spread, centre)
    limit = float(np.quantile(np.concatenate([logits(model, d) for d in dialogues]), 1 - share))
    return Fit(model | {"threshold": threshold_of(limit)}, rounds.strength)


def fit_rounds(x: Floats, is_joint: NDArray[np.int64], rounds: Rounds) -> tuple[Floats, float]:
    """Give weights and bias; ``is_joint`` tells each row whether it is one."""
    weights, bias, _ = fit_logistic(x, is_joint, rounds.strength)
    for _ in range(rounds.count):
        score = x @ weights[0]
        low, high = np.quantile(score[is_joint == 0], [1 - rounds.left_out, 1 - rounds.relabelled])
        labels = np.where(score > high, 1, is_joint)
        kept = (labels == 1) | (score <= low)
        weights, bias, _ = fit_logistic(x[kept], labels[kept], rounds.strength)
    return weights[0], float(bias[0])


def held_out_joints(
    dialogues: Sequence[Dialogue], *, components: bool = True, parts: int = 5
) -> tuple[list[Dialogue], list[Floats]]:
    """Join dialogues that a model did not see, and give that model's logits on them.

    Returns
    -------
    made, scores
        As many as ``dialogues``, or a few more; float64[n - 1] of each.
    """
    fold = folds(len(dialogues), parts)
    made: list[Dialogue] = []
    scores: list[Floats] = []
    for k in range(parts):
        model = fit_joints([d for d, f in zip(dialogues, fold, strict=True) if f != k], components=components).model
        held = [d for d, f in zip(dialogues, fold, strict=True) if f == k]
        tests = joined(held, len(held), np.random.default_rng(k))
        made += tests
        scores += [logits(model, d) for d in tests]
    return made, scores
