"""Two engines side by side: what each decides and how it went, one JSON line a turn and an outcome."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from stabilitykit.decision import Decision, Receipt
from stabilitykit.engine import Engine
from stabilitykit.engine.identity import hashed
from stabilitykit.errors import UsageError
from stabilitykit.integrations.appending import append_line, end_torn_line
from stabilitykit.integrations.telling import tell
from stabilitykit.rollout.arms import CONTROL, GREATEST, TREATMENT, Arms
from stabilitykit.turn import Turn

__all__ = ["Rollout"]


class Rollout:
    """Stands where the engine stood: ``evaluate`` gives the decision that the host acts on.

    ``shadow``: always ``control``'s; ``treatment`` decides beside it, and nobody acts on it. ``ab``: the one of the
    conversation's arm.

    Parameters
    ----------
    control, treatment
        The engine as it is, and the one with the pack to try. Both see every sample; in ``shadow`` both see every turn.
    path
        The record, appended to. It holds conversations as keyed hashes, states, names of actions and the host's tags.
    arms
        The draw, and the key of the hashes.
    mode
        ``shadow`` or ``ab``.

    Raises
    ------
    UsageError
        Another mode.
    OSError
        The record cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from stabilitykit.rollout import read_report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/rollout.jsonl"
    ...     with Rollout(Engine.load("chat"), Engine.load("latency"), path, Arms(b"key"), mode="shadow") as rollout:
    ...         decision = rollout.evaluate(Turn(session_id="c-1", itl_ms=40.0))
    ...         rollout.outcome(decision, ok=True, tags={"depth": 1})
    ...     report = read_report(path)
    >>> report.mode, report.turns, report.differing_turns
    ('shadow', 1, 0)
    """

    def __init__(
        self,
        control: Engine,
        treatment: Engine,
        path: str | os.PathLike[str],
        arms: Arms,
        *,
        mode: Literal["shadow", "ab"],
    ) -> None:
        if mode not in ("shadow", "ab"):
            raise UsageError(f"mode is shadow or ab, not {mode!r}")
        self._engines = {CONTROL: control, TREATMENT: treatment}
        self._arms, self._mode = arms, mode
        self._file = Path(path).open("a+b", buffering=0)  # noqa: SIM115 - closed by `close`
        self._is_whole = False  # whether the last line is known to have its end
        packs = {arm: engine.pack.fingerprint for arm, engine in self._engines.items()}
        self._write({"kind": "rollout", "mode": mode, "share": arms.share, "packs": packs})

    def evaluate(self, turn: Turn) -> Decision:
        """Decide on a turn, and record what each engine that saw it decided. Raises what the acting engine raises."""
        arm = self._arms.of(turn.session_id, tenant=turn.tenant) if self._mode == "ab" else CONTROL
        decision = self._engines[arm].evaluate(turn)
        decided = {arm: _told(decision)}
        if self._mode == "shadow":
            try:
                decided[TREATMENT] = _told(self._engines[TREATMENT].evaluate(turn))
            except Exception as error:  # the one on trial must not cost the host its decision
                tell("shadow_failed", error=type(error).__name__)
        self._write({"kind": "turn", **self._identity(decision), "arm": arm, "decided": decided})
        return decision

    def observe(self, **sample: Any) -> Decision:
        """Give a sample of a replica or device to both engines; the decision is ``control``'s."""
        try:
            self._engines[TREATMENT].observe(**sample)
        except Exception as error:
            tell("shadow_failed", error=type(error).__name__)
        return self._engines[CONTROL].observe(**sample)

    def outcome(
        self,
        decision: Decision,
        applied: Receipt | Sequence[str] | str = (),
        ok: bool | None = None,
        tags: Mapping[str, bool | float] | None = None,
    ) -> None:
        """Record how a turn went, as the host judges it. Never raises.

        Parameters
        ----------
        decision
            What ``evaluate`` gave.
        applied
            The receipt, or the names, of the actions that were carried out; one name may stand alone.
        ok
            Whether the turn was good; None: nobody knows.
        tags
            Further findings by name: a bool (``reference_error``, ``out_of_memory``) is compared as a share of
            conversations, a number (``depth``) as a mean; beyond 1e100 it is none.
        """
        try:
            arm = self._arms.of(decision.session_id, tenant=decision.tenant) if self._mode == "ab" else CONTROL
            kept = {name: value for name, value in (tags or {}).items() if _is_finite(value)}
            entry = {"applied": _names(applied), "ok": ok, "tags": kept}
            self._write({"kind": "outcome", **self._identity(decision), "arm": arm, **entry})
        except Exception as error:
            tell("rollout_record_failed", error=type(error).__name__)

    def close(self) -> None:
        """Close the record."""
        self._file.close()

    def __enter__(self) -> Rollout:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _identity(self, decision: Decision) -> dict[str, Any]:
        session = hashed(decision.session_id, self._arms.key, decision.tenant)
        return {"session": session, "turn": decision.turn_id}

    def _write(self, entry: Mapping[str, Any]) -> None:
        try:
            if not self._is_whole:
                end_torn_line(self._file.fileno())
                self._is_whole = True
            append_line(self._file.fileno(), json.dumps(entry, allow_nan=False).encode() + b"\n")
        except (OSError, ValueError, TypeError) as error:
            self._is_whole = False
            tell("rollout_record_failed", error=type(error).__name__)


def _told(decision: Decision) -> dict[str, Any]:
    return {"state": decision.state, "actions": [action.name for action in decision.actions]}


def _names(applied: Receipt | Sequence[str] | str) -> list[str]:
    if isinstance(applied, str):
        return [applied]
    return list(applied.done if isinstance(applied, Receipt) else applied)


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and abs(float(value)) <= GREATEST
    except OverflowError:  # a whole number that no double holds
        return False
