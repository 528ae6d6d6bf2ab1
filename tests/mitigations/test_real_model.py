"""A real (small, untrained) model of transformers: its masks and positions, faults that are caused, and their cure.

With one layer a key depends on its own token and position only, so a cache whose middle was dropped and whose keys were
turned must answer exactly as the model does on the kept tokens alone.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from stabilitykit.detectors.attention_mask import ATTENTION_MASK
from stabilitykit.detectors.position_ids import POSITION_IDS
from stabilitykit.detectors.position_offset import POSITION_OFFSET
from stabilitykit.detectors.snapshot_drift import SNAPSHOT_DRIFT
from stabilitykit.detectors.trace import trace
from stabilitykit.mitigations.masks import repair_mask
from stabilitykit.mitigations.positions import compensate_positions, kept_after_shift
from stabilitykit.mitigations.rotary import Rope, rotated

pytestmark = pytest.mark.oracle
TOKENS, SINKS, DROPPED = 40, 4, 12
ROPE = Rope(16)


class Small:
    """One layer of Llama, and what its attention was last given."""

    def __init__(self) -> None:
        self.torch = pytest.importorskip("torch", reason="torch is an extra")
        library = pytest.importorskip("transformers", reason="transformers is an extra")
        self.torch.manual_seed(0)
        config = library.LlamaConfig(
            vocab_size=97,
            hidden_size=64,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            attn_implementation="eager",
        )
        self.model = library.LlamaForCausalLM(config).eval()
        self.fresh_cache = lambda: library.DynamicCache(config=config)
        self.given: dict[str, Any] = {}
        attention = self.model.model.layers[0].self_attn
        attention.register_forward_pre_hook(lambda module, args, named: self.given.update(named), with_kwargs=True)
        self.ids = self.torch.randint(0, 97, (1, TOKENS + 1))

    def logits(self, ids: Any, cache: Any, positions: Any = None) -> Any:
        """Give the logits of the last token."""
        where = None if positions is None else self.torch.tensor([positions])
        with self.torch.no_grad():
            out = self.model(ids, position_ids=where, **{self.word(): cache})
        return out.logits[0, -1].numpy()

    def word(self) -> str:
        """Name the argument of the cache, which changed between versions."""
        return "cache" if "cache" in inspect.signature(self.model.forward).parameters else "past_key_values"

    def turn(self) -> dict[str, Any]:
        """Give what a hook would put into a Turn."""
        mask = self.given["attention_mask"][0, 0].numpy()
        return {
            "mask": (mask == 0).astype(np.int64).ravel(),
            "rows": float(mask.shape[0]),
            "positions": self.given["position_ids"][0].numpy().astype(np.int64),
        }


@pytest.fixture
def small():
    """Give the model."""
    return Small()


def shifted(small, turn_keys):
    """Fill a cache, drop tokens behind the sinks as llama.cpp does, and turn the stored keys, or not."""
    cache = small.fresh_cache()
    small.logits(small.ids[:, :TOKENS], cache)
    kept = kept_after_shift(SINKS, TOKENS - SINKS, DROPPED)
    done = compensate_positions(kept, n_sink=SINKS)
    layer = cache.layers[0]
    keys = layer.keys[:, :, kept].numpy()
    layer.keys = small.torch.tensor(rotated(keys, done.rotation, ROPE) if turn_keys else keys)
    layer.values = layer.values[:, :, kept]
    return cache, kept, done


@pytest.mark.capability(
    "issue 5 §4: a real model's shifted cache answers as the kept tokens alone do, once keys are turned"
)
def test_a_shifted_cache_is_cured(small):
    """Turned keys: the logits of a fresh prompt. Keys left as they were: others, though nobody reports an error."""
    cache, kept, done = shifted(small, turn_keys=True)
    fresh = small.logits(small.ids[:, [*kept.tolist(), TOKENS]], small.fresh_cache())
    cured = small.logits(small.ids[:, TOKENS:], cache, [done.next_position])
    np.testing.assert_allclose(cured, fresh, atol=2e-6)
    cache, _, done = shifted(small, turn_keys=False)
    ill = small.logits(small.ids[:, TOKENS:], cache, [done.next_position])
    assert np.abs(ill - fresh).max() > 1e-4


@pytest.mark.capability("issue 3 §1: masks and positions of a real model are right; a shift that is not said is seen")
def test_positions_and_masks_of_the_model(small):
    """Prompt and decoding are in order; a position that goes on as if nothing was dropped is DROPPED tokens ahead."""
    small.logits(small.ids[:, :TOKENS], small.fresh_cache())
    prompt = small.turn()
    cache, kept, done = shifted(small, turn_keys=True)
    small.logits(small.ids[:, TOKENS:], cache, [done.next_position])
    right = small.turn()
    cache, *_ = shifted(small, turn_keys=False)
    small.logits(small.ids[:, TOKENS:], cache, [TOKENS])
    wrong = small.turn()
    assert [out["kind"] for out in trace(ATTENTION_MASK, [prompt, right])] == [0, 0]
    assert [out["kind"] for out in trace(POSITION_IDS, [{"positions": t["positions"]} for t in (prompt, right)])] == [
        0,
        0,
    ]
    sizes = (TOKENS, len(kept) + 1, len(kept) + 1)
    rows = [
        {"positions": t["positions"], "input_tokens": float(n)}
        for t, n in zip((prompt, right, wrong), sizes, strict=True)
    ]
    found = trace(POSITION_OFFSET, rows, {"mode": "rerotate"})
    assert [out["offset"] for out in found] == [0, 0, DROPPED]
    places = [{"positions": wrong["positions"], "cache": [len(kept)]}]
    assert trace(POSITION_IDS, places)[0]["kind"] == 7


def test_a_mask_that_shows_the_future_is_seen_and_repaired(small):
    """One cell of its mask opened: the answer changes, the detector names the cell, the repair restores the answer."""
    torch, ids = small.torch, small.ids[:, :8]
    right = torch.zeros(1, 1, 8, 8).masked_fill(torch.ones(8, 8).triu(1).bool(), float("-inf"))
    opened = right.clone()
    opened[0, 0, 6, 7] = 0.0

    def last(mask):
        with torch.no_grad():
            return small.model(ids, attention_mask=mask).logits[0].numpy()

    before, after = last(right), last(opened)
    assert np.abs(before[6] - after[6]).max() > 1e-4
    (out,) = trace(ATTENTION_MASK, [small.turn()])
    assert (out["kind"], out["row"], out["column"], out["violations_count"]) == (4, 6, 7, 1)
    found = repair_mask(opened[0, 0].numpy().astype(np.float16), cached=0)
    assert (found.wrong_cells, found.odd_cells) == (1, 0)
    again = last(torch.tensor(found.mask.astype(np.float32))[None, None])
    np.testing.assert_array_equal(again, before)


@pytest.mark.capability("issue 3 §1: snapshots of a real model's cache: the same talk is similar, another one less so")
def test_snapshots_of_the_cache(small):
    """Mean values of the cache: one token more changes little, a cache of other tokens much more."""

    def snapshot(ids):
        cache = small.fresh_cache()
        small.logits(ids, cache)
        return cache.layers[0].values[0].mean(dim=1).numpy().ravel().astype(np.float32)

    rows = [snapshot(small.ids[:, :TOKENS]), snapshot(small.ids), snapshot(small.torch.tensor([[5, 5, 7]]))]
    _, same, other = trace(SNAPSHOT_DRIFT, rows, {"layers": 1})
    assert same["similarity"] > 0.9
    assert other["similarity"] < 0.72
