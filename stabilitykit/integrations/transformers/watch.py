"""ModelWatch: hooks in a model that note what it was given, bounded, and give it as fields of a Turn."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from stabilitykit.errors import MissingExtra
from stabilitykit.integrations.transformers.masks import MaskRows, cells_of
from stabilitykit.integrations.transformers.snapshots import snapshot_of

__all__ = ["ModelWatch"]


@attrs.define(eq=False)
class _Pass:
    """One forward pass under way: tokens before it and in it, and what its parts were given."""

    cached: int
    tokens: int
    cache: Any
    padding: Any
    positions: list[NDArray[np.int64]] = attrs.field(factory=list)
    masks: list[NDArray[np.int8]] = attrs.field(factory=list)
    seen: list[Any] = attrs.field(factory=list)


@attrs.define(eq=False)
class _Noted:
    """What the passes of one turn brought."""

    masks: MaskRows
    cached: int = -1
    total: int = 0
    positions: list[NDArray[np.int64]] = attrs.field(factory=list)
    places: list[NDArray[np.int64]] = attrs.field(factory=list)
    logprobs: list[NDArray[np.float32]] = attrs.field(factory=list)
    valid: NDArray[np.bool_] | None = None
    cache: Any = None


class ModelWatch:
    """Watches one model, for one conversation at a time; the model computes what it did before.

    The hooks note the positions that the rotary embedding is given, the masks that attention is given, and the
    log-probabilities of the first tokens of the answer; the cache is read when the turn is asked for. Nothing that goes
    wrong here reaches the model: ``faults`` names it.

    Parameters
    ----------
    model
        A causal language model of transformers (or one that is built alike).
    row
        Of the batch; the others are not looked at.
    layers
        Layers of the cache of which snapshots are taken; None: three of those that keep all tokens; (): no snapshots,
        as for a sliding window that one turn can fill, whose memory does change from turn to turn.
    logprob_positions
        First tokens of an answer whose log-probabilities are given, over the whole vocabulary; 0: none. The setting
        ``positions`` of ``kl_shift`` says how many it uses.
    max_tokens, max_cells
        Bounds on the positions and on the mask's cells that a turn keeps: the last ones. A cell takes a byte, and
        eight in the Turn.

    Attributes
    ----------
    faults
        What could not be read, by part and type of the exception; never more than a few.

    Raises
    ------
    MissingExtra
        torch is not installed.

    Examples
    --------
    One turn, whether a single pass or a whole ``generate``::

        with ModelWatch(model) as watch:
            model.generate(ids, cache=cache, max_new_tokens=64)
            decision = engine.evaluate(Turn(session_id="c-1", **watch.turn_fields()))
    """

    def __init__(
        self,
        model: Any,
        *,
        row: int = 0,
        layers: tuple[int, ...] | None = None,
        logprob_positions: int = 1,
        max_tokens: int = 65536,
        max_cells: int = 1 << 20,
    ) -> None:
        try:
            import torch
        except ImportError:
            raise MissingExtra("torch", "torch") from None
        self.faults: tuple[str, ...] = ()
        self._torch = torch
        self._row, self._layers = row, layers
        self._logprob_positions, self._max_tokens, self._max_cells = logprob_positions, max_tokens, max_cells
        config: Any = getattr(model, "config", None)
        config = config.get_text_config() if hasattr(config, "get_text_config") else config
        self._is_mla = bool(getattr(config, "kv_lora_rank", None))
        self._longest = getattr(config, "max_position_embeddings", None)
        self._signature = inspect.signature(model.forward)
        self._pass: _Pass | None = None
        self._noted = _Noted(MaskRows(max_cells))
        self._window = 0
        self._hooks = [
            model.register_forward_pre_hook(self._safely("pass", self._begin), with_kwargs=True),
            *self._hooks_inside(model),
            model.register_forward_hook(self._safely("end", self._end)),
        ]

    def _hooks_inside(self, model: Any) -> list[Any]:
        attention = [m for m in model.modules() if _is_attention(m)]
        windows = [_window_of(m) for m in attention]
        self._window = 0 if 0 in windows else next(iter(windows), 0)  # layers that see everything go first
        masked = [m for m, window in zip(attention, windows, strict=True) if window == self._window]
        rotary = [m for m in model.modules() if type(m).__name__.endswith("RotaryEmbedding")]
        positioned = rotary or attention[:1]
        return [
            *(m.register_forward_pre_hook(self._safely("mask", self._read_mask), with_kwargs=True) for m in masked),
            *(
                m.register_forward_pre_hook(self._safely("positions", self._read_positions), with_kwargs=True)
                for m in positioned
            ),
        ]

    def __enter__(self) -> ModelWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the hooks out of the model."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def turn_fields(self) -> dict[str, Any]:
        """Give what the passes since the last call brought, as fields of a Turn, and begin the next turn.

        Ask before the cache is changed or dropped: its snapshot is taken now. ``input_tokens`` counts everything that
        the model saw, its own tokens but the last included; ``cached_tokens`` what was in the cache before.
        """
        noted, self._noted, self._pass = self._noted, _Noted(MaskRows(self._max_cells)), None
        if noted.cached < 0:
            return {}
        fields: dict[str, Any] = {
            "input_tokens": noted.total, "cached_tokens": noted.cached, "is_mla": self._is_mla, **noted.masks.signals(),
        }  # fmt: skip
        if self._longest is not None:
            fields["context_window_tokens"] = int(self._longest)
        if noted.positions:
            fields["position_ids"] = np.concatenate(noted.positions)[-self._max_tokens :]
            fields["cache_positions"] = np.concatenate(noted.places)[-self._max_tokens :]
        if noted.valid is not None:
            fields["valid_keys"] = noted.valid.astype(np.int64)
        if noted.logprobs:
            fields["logprobs"] = np.concatenate(noted.logprobs)
        cache = noted.cache() if noted.cache is not None else None
        with self._kept("snapshot"):
            snapshot = None if cache is None else snapshot_of(cache, self._layers, self._row, noted.valid)
            fields |= {} if snapshot is None else {"snapshot": snapshot}
        return fields

    def _safely(self, part: str, read: Any) -> Any:
        """Make a hook that changes nothing and never raises."""

        def hook(module: Any, *given: Any) -> None:
            with self._kept(part):
                if not self._torch.compiler.is_compiling():
                    read(module, *given)

        return hook

    @contextmanager
    def _kept(self, part: str) -> Generator[None]:
        """Keep an exception here, as a fault."""
        try:
            yield
        except Exception as error:
            told = f"{part}: {type(error).__name__}"
            if told not in self.faults and len(self.faults) < 16:
                self.faults = (*self.faults, told)

    def _begin(self, module: Any, args: Any, named: Any) -> None:
        self._pass = None
        given = {**self._signature.bind_partial(*args).arguments, **named} if args else named
        ids = _first(given.get("input_ids"), given.get("inputs_embeds"))
        cache = _first(given.get("cache"), given.get("past_key_values"))
        cached = int(cache.get_seq_length()) if cache is not None else 0
        mask = given.get("attention_mask")
        padding = mask if getattr(mask, "ndim", 0) == 2 else None
        self._pass = _Pass(cached, int(ids.shape[1]), cache, padding)

    def _read_positions(self, module: Any, args: Any, named: Any) -> None:
        now: _Pass | None = self._pass
        given: Any = _first(named.get("position_ids"), args[1] if len(args) > 1 else None)
        if now is None or getattr(given, "ndim", 0) < 1 or given.shape[-1] != now.tokens:
            return
        rows = given.detach().reshape(-1, now.tokens)  # [n], [b, n] or, in three equal parts for text, [3, b, n]
        read = rows[min(self._row, len(rows) - 1)].to("cpu").numpy().astype(np.int64)
        if not any(np.array_equal(read, other) for other in now.positions):
            now.positions.append(read)

    def _read_mask(self, module: Any, args: Any, named: Any) -> None:
        now, given = self._pass, named.get("attention_mask")
        if now is None or getattr(given, "ndim", 0) != 4 or any(given is other for other in now.seen):
            return
        now.seen.append(given)  # every layer is given the same one, unless something is wrong
        row = given[min(self._row, given.shape[0] - 1), 0]
        cells = cells_of(row[-max(self._max_cells // row.shape[-1], 1) :])
        if not any(np.array_equal(cells, other) for other in now.masks):
            now.masks.append(cells)

    def _end(self, module: Any, args: Any, output: Any) -> None:
        now, self._pass = self._pass, None
        if now is None:
            return
        if now.cached != self._noted.total:  # another conversation, or this one cut: nothing before goes with it
            self._noted = _Noted(MaskRows(self._max_cells))
        noted = self._noted
        noted.cached = now.cached if noted.cached < 0 else noted.cached
        noted.total = now.cached + now.tokens
        noted.valid = self._valid_of(now)
        noted.masks.add(now.cached, now.tokens, self._window, now.masks)
        cache = _first(now.cache, getattr(output, "cache", None), getattr(output, "past_key_values", None))
        noted.cache = weakref.ref(cache) if cache is not None else None
        self._note_positions(now, noted)
        logits = getattr(output, "logits", None)
        if logits is not None and len(noted.logprobs) < self._logprob_positions:
            last = logits[min(self._row, logits.shape[0] - 1), -1].detach().float()
            noted.logprobs.append(last.log_softmax(-1).to("cpu").numpy())

    def _valid_of(self, now: _Pass) -> NDArray[np.bool_] | None:
        """Give which tokens are no padding; None: all, or nobody said."""
        if now.padding is None:
            return None
        marks = now.padding[min(self._row, now.padding.shape[0] - 1)].detach().to("cpu").numpy() != 0
        total = now.cached + now.tokens
        return marks[:total] if len(marks) >= total and not marks[:total].all() else None

    def _note_positions(self, now: _Pass, noted: _Noted) -> None:
        """Keep the positions and the places in the cache of the tokens that are no padding."""
        if not now.positions:
            return
        places = np.arange(now.cached, now.cached + now.tokens)
        if noted.valid is not None:
            places = np.cumsum(noted.valid)[now.cached :] - 1
            kept = noted.valid[now.cached :]
            places, now.positions = places[kept], [row[kept] for row in now.positions]
        wrong = (row for row in now.positions if not np.array_equal(row, places))
        noted.positions.append(next(wrong, now.positions[0]))
        noted.places.append(places.astype(np.int64))
        while sum(map(len, noted.positions[1:])) >= self._max_tokens:
            del noted.positions[0], noted.places[0]


def _first(*given: Any) -> Any:
    """Give the first that is there; an empty cache is there, and false."""
    return next((one for one in given if one is not None), None)


def _window_of(module: Any) -> int:
    """Give the keys of an attention's sliding window, 0: none; where all have one, only the configuration says so."""
    config = getattr(module, "config", None)
    return int(getattr(module, "sliding_window", getattr(config, "sliding_window", None)) or 0)


def _is_attention(module: Any) -> bool:
    return isinstance(getattr(module, "layer_idx", None), int) and "Attention" in type(module).__name__
