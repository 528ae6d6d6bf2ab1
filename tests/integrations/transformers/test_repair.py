"""A fault in a live model, what the engine asks for, and the logits after the repair: those of the clean run."""

from __future__ import annotations

import numpy as np
import pytest

from stabilitykit import Engine, Turn
from stabilitykit.integrations.transformers import ModelWatch, rope_of, turn_keys
from stabilitykit.mitigations.masks import repair_mask
from stabilitykit.mitigations.positions import compensate_positions, kept_after_shift
from tests.integrations.transformers.models import Talk, tiny

pytestmark = pytest.mark.oracle
CLEAN = 1e-4
"""How near to the clean run the logits must come (the acceptance figure of the project)."""


@pytest.fixture
def pair():
    """Give two conversations with one model after the same turns: one for the clean run, one for the fault."""
    model = tiny()
    clean = Talk(model, None, None)
    with ModelWatch(model) as watch:
        ill = Talk(model, watch, Engine.load("integrity"))
        for _ in range(3):
            words = clean.words(20)
            clean.step(words)
            watch.turn_fields()
            ill.step(words)
            assert ill.decide().state == "healthy"
        yield clean, ill
        assert watch.faults == ()


def off(clean, ill):
    """Give the greatest difference of the last logits."""
    return float((clean.logits - ill.logits).abs().max())


def asked(ill):
    """Give the actions that the engine asks for, and what the hooks saw."""
    fields = ill.watch.turn_fields()
    decision = ill.engine.evaluate(Turn(session_id="c-1", **fields))
    return [action.name for action in decision.actions], fields


@pytest.mark.capability(
    "issue 5 §4: shifted positions on a live Llama: after compensation the clean logits, within 1e-4"
)
def test_shifted_positions(pair):
    """A prompt at the wrong places is taken back and computed again where it belongs."""
    clean, ill = pair
    words, torch = clean.words(12), clean.torch
    before = ill.copy_cache()
    clean.step(words)
    ill.watch.turn_fields()
    ill.step(words, position_ids=torch.arange(12)[None] + ill.held + 40)
    assert off(clean, ill) > CLEAN
    actions, fields = asked(ill)
    assert actions == ["compensate_positions"]
    done = compensate_positions([*range(int(fields["cached_tokens"])), *fields["position_ids"]])
    ill.cache, ill.held = before, ill.held - 12
    ill.step(words, position_ids=torch.from_numpy(done.positions[-12:])[None])
    assert off(clean, ill) <= CLEAN
    assert asked(ill)[0] == []


@pytest.mark.capability("issue 5 §4: damaged masks on a live Llama: after the repair the clean logits, within 1e-4")
@pytest.mark.parametrize("value", [-np.inf, 3e38, -2.5])
def test_damaged_mask(pair, value):
    """One cell of a prompt's mask: hidden, made huge, or odd; the recomputed mask gives the clean answer."""
    clean, ill = pair
    words, torch = clean.words(12), clean.torch
    before = ill.copy_cache()
    mask = torch.zeros(1, 1, 12, 72).masked_fill(torch.ones(12, 72).triu(61).bool(), torch.finfo(torch.float32).min)
    mask[0, 0, -1, 7] = value
    clean.step(words)
    ill.watch.turn_fields()
    ill.step(words, attention_mask=mask)
    assert off(clean, ill) > CLEAN
    actions, fields = asked(ill)
    assert "repair_mask" in actions
    cells = fields["attention_mask"].reshape(fields["mask_rows"], -1)
    found = repair_mask(cells, cached=fields["mask_cached_tokens"])
    assert found.was_damaged
    right = torch.zeros(1, 1, *found.mask.shape).masked_fill(torch.from_numpy(found.mask == 0), -torch.inf)
    ill.cache, ill.held = before, ill.held - 12
    ill.step(words, attention_mask=right)
    assert off(clean, ill) <= CLEAN
    assert asked(ill)[0] == []


@pytest.mark.capability(
    "issue 5 §4: a rolled cache or a flipped bit: back to the snapshot, the clean logits within 1e-4"
)
@pytest.mark.parametrize("fault", ["rolled", "flipped"])
def test_damaged_cache(pair, fault):
    """The cache of the turn before is taken, as `rollback_snapshot` asks, and the turn is computed again.

    The keys alone are rolled: with their values they would say the same, for what a key says of its place is in it.
    """
    clean, ill = pair
    words = clean.words(12)
    before = ill.copy_cache()
    for layer in ill.cache.layers:
        if fault == "rolled":
            layer.keys = layer.keys.roll(5, 2)
    if fault == "flipped":
        ill.cache.layers[1].values.view(clean.torch.int32)[0, 0, 30, 5] ^= 1 << 30
    clean.step(words)
    ill.watch.turn_fields()
    ill.step(words)
    assert not off(clean, ill) <= CLEAN
    actions, fields = asked(ill)
    assert "rollback_snapshot" in actions
    ill.cache, ill.held = before, int(fields["cached_tokens"])
    ill.step(words)
    assert off(clean, ill) <= CLEAN


@pytest.mark.capability(
    "issue 5 §4: a shift whose keys were not turned, three layers: turned, the clean logits within 1e-4"
)
def test_keys_that_were_not_turned(pair):
    """The first tokens are dropped. Clean: all others keep their positions, which answers the same (B4.3)."""
    clean, ill = pair
    torch, dropped = clean.torch, 20
    for talk in (clean, ill):
        for layer in talk.cache.layers:
            layer.keys, layer.values = layer.keys[:, :, dropped:], layer.values[:, :, dropped:]
    word = clean.words(1)
    clean.step(word, position_ids=torch.tensor([[60]]))
    before = ill.copy_cache()
    ill.step(word, position_ids=torch.tensor([[60 - dropped]]))
    assert off(clean, ill) > CLEAN
    done = compensate_positions(kept_after_shift(n_keep=0, n_left=60, n_discard=dropped))
    ill.cache = before
    turn_keys(ill.cache, done.rotation, rope_of(ill.model.config))
    ill.step(word, position_ids=torch.tensor([[done.next_position]]))
    assert off(clean, ill) <= CLEAN


@pytest.mark.capability(
    "issue 5 §4: positions that go on after a cut are seen by the hooks, and put right with the keys"
)
def test_a_cut_that_positions_do_not_know(pair):
    """Four sinks stay, twenty tokens go; the host counts on. Keys turned, positions inside the cache: all is quiet."""
    clean, ill = pair
    torch = clean.torch
    kept = kept_after_shift(n_keep=4, n_left=56, n_discard=20)
    for layer in ill.cache.layers:
        layer.keys, layer.values = layer.keys[:, :, kept], layer.values[:, :, kept]
    before, word = ill.copy_cache(), clean.words(1)
    ill.watch.turn_fields()
    ill.step(word, position_ids=torch.tensor([[60]]))
    actions, _ = asked(ill)
    assert "compensate_positions" in actions
    done = compensate_positions(kept, n_sink=4)
    ill.cache = before
    turn_keys(ill.cache, done.rotation, rope_of(ill.model.config))
    ill.step(word, position_ids=torch.tensor([[done.next_position]]))
    fields = ill.watch.turn_fields()
    assert fields["position_ids"].tolist() == fields["cache_positions"].tolist() == [40]
