"""Dialogues for calibration: embeddings in an ``.npz``, what is known of the messages beside them.

The ``.npz`` holds a row for every message, dialogue after dialogue: ``E`` (components), ``n_turns`` (messages of each
dialogue), ``is_user``, and, where there are labels, ``shift`` (1 on the first message of another topic). A JSON Lines
file beside it, one dialogue a line, adds lengths, question marks and intents. Its ``turns`` have ``text`` (the tokens
are estimated and the question marks counted, nothing of it is kept) or ``tokens`` (of the text alone) and
``questions``, and the user's ``intent``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.errors import RecordError
from stabilitykit.mitigations.context.tokens import MESSAGE_TOKENS, estimate_tokens
from stabilitykit.sources.questions import count_questions

__all__ = ["Dialogue", "read_dialogues"]

Floats = NDArray[np.float64]
_UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError),
    *(EOFError, BadZipFile, zlib.error),  # an archive that is empty, cut or damaged
)


@attrs.frozen(eq=False)
class Dialogue:
    """The turns of one conversation.

    Parameters
    ----------
    vectors
        float64[n, d], each of length 1.
    shift
        int64[n]: 1 where another topic begins; the first turn never counts.
    message, answer
        float64[n], tokens; NaN where unknown. What ``drift_probe`` sees of a served conversation: ``answer`` is the
        text between this turn and the one before, as ``output_tokens`` has it, and ``message`` the growth of
        ``input_tokens`` beyond that, which is this turn's text and what a chat template adds around it and around
        each message between.
    questions
        float64[n], question marks of this turn's message; NaN where unknown.
    intent
        The intent of each turn, "" where there is none.
    """

    vectors: Floats
    shift: NDArray[np.int64]
    message: Floats
    answer: Floats
    questions: Floats
    intent: tuple[str, ...] = ()


def read_dialogues(
    embeddings: Path, turns: Path | None = None, *, label: str = "shift", only_user: bool = False
) -> list[Dialogue]:
    """Read dialogues.

    Parameters
    ----------
    embeddings, turns
        The two files; without the second, all but the embeddings is unknown.
    label
        Array of the boundaries; without it in the file all are 0.
    only_user
        The user's messages are the turns and what is between them the answers; else every message is a turn.

    Raises
    ------
    RecordError
        A file that is not laid out like that, without any text of it.
    """
    try:
        with embeddings.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            rows = np.asarray(file["E"], np.float64)
            counts = [int(n) for n in file["n_turns"]]
            is_user = np.asarray(file["is_user"]) > 0 if "is_user" in file else np.ones(len(rows), bool)
            shift = np.asarray(file[label], np.int64) if label in file else np.zeros(len(rows), np.int64)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        if (
            sum(counts) != len(rows)
            or len(is_user) != len(rows)
            or len(shift) != len(rows)
            or not np.isfinite(norms).all()
        ):
            raise ValueError("its arrays do not fit together")
        told = _told(turns, counts) if turns else [[{}] * n for n in counts]
    except _UNREADABLE as error:
        said = f"{embeddings.name}: no dialogues to calibrate on: {type(error).__name__}: {error}"
        raise RecordError(said[:300]) from None
    rows /= np.where(norms > 0, norms, 1.0)
    ends = np.cumsum(counts)
    parts = [slice(end - n, end) for end, n in zip(ends, counts, strict=True)]
    return [_dialogue(rows[p], shift[p], is_user[p], t, only_user) for p, t in zip(parts, told, strict=True)]


def _told(path: Path, counts: Sequence[int]) -> list[list[dict[str, Any]]]:
    with path.open(encoding="utf-8") as file:
        found = [json.loads(line)["turns"] for line, _ in zip(file, counts, strict=False)]
    if [len(turns) for turns in found] != list(counts):
        raise ValueError(f"{path.name} has other dialogues")
    return found


def _dialogue(
    rows: Floats, shift: NDArray[np.int64], is_user: NDArray[np.bool_], told: list[dict[str, Any]], only_user: bool
) -> Dialogue:
    size = np.array([_tokens(turn) for turn in told])
    intents = [str(turn.get("intent") or "") for turn in told]
    at = np.flatnonzero(is_user) if only_user else np.arange(len(rows))
    before = [range(a + 1, b) for a, b in zip([-1, *at[:-1]], at, strict=True)]
    return Dialogue(
        rows[at],
        np.array([int(k > 0 and shift[[*gap, b]].any()) for k, (gap, b) in enumerate(zip(before, at, strict=True))]),
        size[at] + MESSAGE_TOKENS * np.array([1 + len(gap) for gap in before]),
        np.array([size[list(gap)].sum() for gap in before]),
        np.array([_questions(told[b]) for b in at]),
        tuple(intents[b] for b in at),
    )


def _tokens(turn: dict[str, Any]) -> float:
    if "tokens" in turn:
        return float(turn["tokens"])
    return float(estimate_tokens(turn["text"])) if "text" in turn else np.nan


def _questions(turn: dict[str, Any]) -> float:
    if "questions" in turn:
        return float(turn["questions"])
    return float(count_questions(turn["text"])) if "text" in turn else np.nan
