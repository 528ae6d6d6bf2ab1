"""Hooks in a live model, through the shipped pack: what is seeded is caught by its rule, and nothing else is."""

from __future__ import annotations

import gc
import time
import weakref
from contextlib import contextmanager

import numpy as np
import pytest

from stabilitykit import Engine, Turn
from stabilitykit.detectors.kl_shift import KL_SHIFT
from stabilitykit.detectors.trace import trace
from stabilitykit.integrations.transformers import ModelWatch
from stabilitykit.mitigations.positions import compensate_positions
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources import PRODUCERS
from tests.integrations.transformers.models import DEEPSEEK, VOCABULARY, Talk, tiny

pytestmark = pytest.mark.oracle
TURNS = 4
WINDOWED = """\
stabilitykit: 1
pack: windowed
extends: [integrity]
detectors:
  mask: {override: true, type: attention_mask, window: 64}
"""


@contextmanager
def watched(model=None, engine=None, cache=None, before=None, **more):
    """Give a conversation whose model is watched; ``before`` puts faults in that the hooks must see."""
    model = tiny() if model is None else model
    if before is not None:
        before(model)
    with ModelWatch(model, **more) as watch:
        talk = Talk(model, watch, engine or Engine.load("integrity"), cache)
        yield talk
        assert watch.faults == ()


def run(talk, turns=TURNS, least=14):
    """Run sound turns of 14 to 23 tokens and 5 of the answer; gives the decisions."""
    draw = np.random.default_rng(0)
    told = []
    for _ in range(turns):
        talk.say(talk.words(int(draw.integers(least, least + 10))), 5)
        told.append(talk.decide())
    return told


def silent(decisions):
    """Tell whether nothing was said, not even a fault."""
    return all(not (d.matches or d.fired or d.faults) and d.state == "healthy" for d in decisions)


def caught(talk, *rules):
    """Tell whether these rules, and no others, fire on what the hooks saw last."""
    decision = talk.decide()
    return (decision.fired, tuple(match.rule for match in decision.matches), decision.faults) == (rules, rules, ())


@pytest.mark.capability("issue 3 §2: model hooks: a clean conversation of 60 turns through `generate` fires nothing")
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_clean_run(attention):
    """Sixty turns of 5 to 44 tokens each: no rule, no fault, and every signal that the pack reads is there."""
    draw = np.random.default_rng(1)
    with watched(tiny(attn_implementation=attention)) as talk:
        told, fields = [], {}
        for _ in range(60):
            talk.generate(talk.words(int(draw.integers(5, 45))), int(draw.integers(2, 12)))
            fields = talk.watch.turn_fields()
            told.append(talk.engine.evaluate(Turn(session_id="c-1", **fields)))
        assert silent(told)
    assert fields["position_ids"].tolist() == list(range(fields["cached_tokens"], fields["input_tokens"]))
    given = {name for name in fields if name in CATALOGUE}
    assert given == set(fields)
    if attention == "eager":
        assert given | {"valid_keys"} == set(PRODUCERS["transformers"])


@pytest.mark.capability("issue 3 §2: model hooks: log-probabilities over the whole vocabulary are the model's own")
def test_log_probabilities():
    """Those of the first tokens of the answer, equal to the softmax of the logits."""
    with watched(logprob_positions=2) as talk:
        logits = [talk.step(talk.words(20)), talk.step(talk.words(1)), talk.step(talk.words(1))]
        given = talk.watch.turn_fields()["logprobs"]
    wanted = talk.torch.stack(logits[:2]).log_softmax(-1).ravel().numpy()
    np.testing.assert_allclose(given, wanted, atol=1e-6)
    assert given.dtype == np.float32
    assert len(given) == 2 * VOCABULARY


def test_divergence_of_live_log_probabilities():
    """What `kl_shift` makes of two turns is torch's divergence of the two distributions."""
    with watched() as talk:
        given = []
        for _ in range(2):
            talk.step(talk.words(20))
            given.append({"full_logprobs": talk.watch.turn_fields()["logprobs"]})
    last = trace(KL_SHIFT, given, {"mode": "full", "vocab_size": VOCABULARY})[1]
    before, now = (talk.torch.from_numpy(one["full_logprobs"]).double() for one in given)
    wanted = talk.torch.nn.functional.kl_div(before, now, reduction="sum", log_target=True)
    assert last["kl_nats"] == pytest.approx(float(wanted), abs=1e-6)
    assert last["kl_nats"] > 0.01


@pytest.mark.capability("issue 3 §2: model hooks: positions shifted while decoding are caught, and nothing else is")
@pytest.mark.parametrize("shift", [1, 3, -2, 100])
def test_shifted_positions(shift):
    """One token of an answer is given a position that is not its place."""
    with watched() as talk:
        assert silent(run(talk))
        talk.say(talk.words(20), 5, shift=shift)
        assert caught(talk, "positions-broken")


def test_shifted_positions_of_a_prompt():
    """All tokens of a prompt are as far off: only the cache tells."""
    with watched() as talk:
        assert silent(run(talk))
        talk.step(talk.words(10), position_ids=talk.torch.arange(10)[None] + talk.held + 2)
        assert caught(talk, "positions-broken")


def test_positions_shifted_inside_the_model():
    """The caller is right; a patch moves what the rotary embedding is given."""
    moved = [0]

    def patch(module, args, named):
        return args, {**named, "position_ids": named["position_ids"] + moved[0]}

    with watched(
        before=lambda model: model.model.rotary_emb.register_forward_pre_hook(patch, with_kwargs=True)
    ) as talk:
        assert silent(run(talk))
        moved[0] = 2
        talk.step(talk.words(10))
        assert caught(talk, "positions-broken")


def in_masks(change, layers=(0, 1, 2)):
    """Make a fault: from now on `change(mask)` happens to a copy of the mask of some layers while `fault.on`."""

    class Fault:
        on = False

        def __call__(self, model):
            for k in layers:
                model.model.layers[k].self_attn.register_forward_pre_hook(self.hook, with_kwargs=True)

        def hook(self, module, args, named):
            if not self.on:
                return None
            mask = named["attention_mask"].clone()
            change(mask)
            return args, {**named, "attention_mask": mask}

    return Fault()


def hide(mask):
    """Hide one key that should be seen."""
    mask[..., -1, 7] = -np.inf


@pytest.mark.capability("issue 3 §2: model hooks: one masked cell, in one layer or all, is caught, and nothing else is")
@pytest.mark.parametrize("layers", [(0, 1, 2), (0,), (2,)])
@pytest.mark.parametrize("tokens", [1, 12])
def test_masked_cell(layers, tokens):
    """One cell of the mask of a prompt, or of a token of the answer, is hidden."""
    fault = in_masks(hide, layers)
    with watched(before=fault) as talk:
        assert silent(run(talk))
        talk.step(talk.words(20))
        fault.on = True
        talk.step(talk.words(tokens))
        fault.on = False
        talk.step(talk.words(1))
        assert caught(talk, "mask-wrong")


def flip(bit, column):
    """Make a change: one bit of one cell of the last row is flipped."""

    def change(mask):
        torch = pytest.importorskip("torch")
        whole = {2: torch.int16, 4: torch.int32}[mask.element_size()]
        cell = mask.view(whole)[..., -1, column]
        cell ^= -(1 << bit) if bit == 8 * mask.element_size() - 1 else 1 << bit

    return change


@pytest.mark.capability("issue 3 §2: model hooks: a flipped bit of a mask, single or half precision, is caught")
@pytest.mark.parametrize(("form", "bits"), [("float32", (0, 13, 23, 30)), ("float16", (0, 5, 10, 14))])
def test_flipped_bit_of_a_mask(form, bits):
    """A cell of 0 becomes a number that no mask holds: its meaning stays, its value is called."""
    for bit in bits:
        fault = in_masks(flip(bit, 7))
        with watched(tiny(form=form), before=fault) as talk:
            assert silent(run(talk))
            fault.on = True
            talk.step(talk.words(3))
            assert caught(talk, "mask-wrong", "mask-damaged")


@pytest.mark.capability("issue 3 §2: model hooks: a flipped bit in a cached key or value is caught by the KV means")
@pytest.mark.parametrize("part", ["keys", "values"])
@pytest.mark.parametrize("place", [3, 40])
@pytest.mark.parametrize(("form", "bit"), [("float32", 30), ("float16", 14)])
def test_flipped_bit_of_the_cache(part, place, form, bit):
    """The highest bit of an exponent, in one number of one layer."""
    with watched(tiny(form=form)) as talk:
        assert silent(run(talk))
        talk.say(talk.words(20), 5)
        cells = getattr(talk.cache.layers[1], part)
        assert 0 < abs(cells[0, 1, place, 4]) < 2
        cells.view(talk.torch.int32 if form == "float32" else talk.torch.int16)[0, 1, place, 4] ^= 1 << bit
        assert caught(talk, "snapshot-changed")


@pytest.mark.capability("issue 3 §2: model hooks: a rolled cache is caught, though its means are what they were")
@pytest.mark.parametrize(
    ("axis", "shift"), [("tokens", 1), ("tokens", 7), ("tokens", -20), ("keys", 1), ("keys", -20), ("heads", 1)]
)
def test_rolled_cache(axis, shift):
    """Keys and values of all layers, or the keys alone, are moved round between two turns."""
    with watched() as talk:
        assert silent(run(talk))
        for layer in talk.cache.layers:
            layer.keys = layer.keys.roll(shift, 1 if axis == "heads" else 2)
            if axis != "keys":
                layer.values = layer.values.roll(shift, 1 if axis == "heads" else 2)
        talk.say(talk.words(20), 5)
        assert caught(talk, "snapshot-changed")


def test_another_conversations_cache():
    """A cache of the same length that belongs to somebody else."""
    with watched() as talk:
        assert silent(run(talk))
        other = Talk(talk.model, talk.watch, None, seed=9)
        other.step(other.words(talk.held))
        talk.watch.turn_fields()
        talk.cache = other.cache
        talk.say(talk.words(20), 5)
        assert caught(talk, "snapshot-changed")


@pytest.mark.capability(
    "issue 3 §2: model hooks: MLA (a small DeepSeek): compensation is refused, the context is reset"
)
def test_latent_attention():
    """The same shift on a model that caches one shared latent."""
    with watched(tiny("DeepseekV3", **DEEPSEEK)) as talk:
        assert silent(run(talk))
        talk.say(talk.words(20), 5, shift=3)
        fields = talk.watch.turn_fields()
        decision = talk.engine.evaluate(Turn(session_id="c-1", **fields))
    assert decision.fired == ("positions-lost",)
    assert "compensate_positions" not in [action.name for action in decision.actions]
    assert "reset_context" in [action.name for action in decision.actions]
    assert "MLA" in compensate_positions(fields["position_ids"], is_mla=fields["is_mla"]).why


@pytest.mark.capability("issue 3 §2: model hooks: sliding windows, fixed and growing caches")
@pytest.mark.parametrize("kind", ["growing", "fixed", "whole"])
def test_sliding_window(tmp_path, kind):
    """Far beyond a window of 64 a sound model is silent, whatever its cache keeps; a hidden cell is caught."""
    pack = tmp_path / "windowed.yaml"
    pack.write_text(WINDOWED, encoding="utf-8")
    model, fault = tiny("Mistral", sliding_window=64), in_masks(lambda mask: mask[..., -1, -4].fill_(-np.inf))
    library = pytest.importorskip("transformers")
    caches = {
        "growing": lambda: library.DynamicCache(config=model.config),
        "fixed": lambda: library.StaticCache(config=model.config, max_cache_len=512),
        "whole": library.DynamicCache,
    }
    with watched(model, Engine.load(str(pack)), caches[kind](), before=fault) as talk:
        talk.step(talk.words(70))
        assert silent([talk.decide(), *run(talk, 30, least=1)])
        fault.on = True
        talk.step(talk.words(1))
        assert caught(talk, "mask-wrong")


@pytest.mark.parametrize("tokens", [1, 100])
def test_a_window_that_a_turn_fills(tmp_path, tokens):
    """More new tokens than the window holds: masks are right, and snapshots are left out when asked to."""
    pack = tmp_path / "windowed.yaml"
    pack.write_text(WINDOWED, encoding="utf-8")
    with watched(tiny("Mistral", sliding_window=64), Engine.load(str(pack)), layers=()) as talk:
        for _ in range(3):
            talk.step(talk.words(tokens))
            assert "snapshot" not in (fields := talk.watch.turn_fields())
            assert silent([talk.engine.evaluate(Turn(session_id="c-1", **fields))])


def test_layers_of_two_kinds():
    """Where some layers see everything and some a window, the first kind is looked at."""
    with watched(tiny("Gemma2", head_dim=16, sliding_window=16)) as talk:
        assert silent(run(talk, 6))


def test_fixed_cache():
    """A cache of 256 places, most of them free: the free ones are no part of the mask or the means."""
    model = tiny()
    library = pytest.importorskip("transformers")
    cache = library.StaticCache(config=model.config, max_cache_len=256)
    fault = in_masks(hide)
    with watched(model, cache=cache, before=fault) as talk:
        assert silent(run(talk, 6))
        fault.on = True
        talk.step(talk.words(1))
        assert caught(talk, "mask-wrong")


def test_padding():
    """The shorter of two prompts, padded in front: its positions begin behind the padding, which is not valid."""
    with watched(row=1) as talk:
        torch = talk.torch
        marks = torch.ones(2, 20, dtype=torch.long)
        marks[1, :6] = 0
        ids = talk.words(40).view(2, 20)
        for _ in range(3):
            places = (marks.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            talk.step(ids, attention_mask=marks, position_ids=places)
            fields = talk.watch.turn_fields()
            assert fields["valid_keys"].tolist() == marks[1].tolist()
            assert fields["position_ids"][-1] == marks[1].sum() - 1
            assert silent([talk.engine.evaluate(Turn(session_id="c-1", **fields))])
            ids, marks = ids[:, :1], torch.cat([marks, torch.ones(2, 1, dtype=torch.long)], dim=1)


def test_without_a_cache():
    """Each turn is one pass over everything, as in training: no snapshot, and all else is in order."""
    with watched() as talk:
        for tokens in (20, 30, 40):
            with talk.torch.no_grad():
                talk.model(talk.words(tokens), use_cache=False)
            fields = talk.watch.turn_fields()
            assert "snapshot" not in fields
            assert silent([talk.engine.evaluate(Turn(session_id="c-1", **fields))])


def test_memory_is_bounded():
    """A long turn keeps the last rows and positions, and no cache is kept alive."""
    with watched(max_tokens=50, max_cells=2000) as talk:
        talk.step(talk.words(90))
        for _ in range(80):
            talk.step(talk.words(1))
        cache = weakref.ref(talk.cache)
        noted = talk.watch._noted
        assert sum(map(len, noted.positions)) <= 140
        fields = talk.watch.turn_fields()
        assert fields["position_ids"].tolist() == list(range(120, 170))
        assert len(fields["attention_mask"]) <= 2000
        assert silent([talk.engine.evaluate(Turn(session_id="c-1", **fields))])
        talk.step(talk.words(1))
        talk.cache = None
        gc.collect()
        assert cache() is None
        assert "snapshot" not in talk.watch.turn_fields()


def test_nothing_seen_is_nothing_said():
    """No pass, and passes after the hooks are gone: no fields."""
    with watched() as talk:
        assert talk.watch.turn_fields() == {}
    talk.step(talk.words(5))
    assert talk.watch.turn_fields() == {}
    assert not talk.model._forward_pre_hooks
    assert not talk.model._forward_hooks


@pytest.mark.parametrize(
    ("wrong", "parts"), [({"layers": (0, 99)}, {"snapshot"}), ({"row": -9}, {"positions", "mask", "end", "snapshot"})]
)
def test_what_goes_wrong_stays_here(wrong, parts):
    """A layer and a row that do not exist: the model answers as ever, and the faults are named, once each."""
    model = tiny()
    plain, answer = Talk(model, None, None), None
    with ModelWatch(model, **wrong) as watch:
        for _ in range(2):
            talk = Talk(model, watch, None)
            answer = talk.step(talk.words(20))
            watch.turn_fields()
        assert set(watch.faults) == {f"{part}: IndexError" for part in parts}
        assert len(watch.faults) == len(parts)
    assert (answer == plain.step(plain.words(20))).all()


def test_tracing_is_left_alone():
    """A watched model can be exported; the hooks note nothing of it."""
    from stabilitykit.integrations.transformers import check_position_flow

    with watched() as talk:
        assert check_position_flow(talk.model).is_unmodified
        assert talk.watch.turn_fields() == {}


@pytest.mark.capability("issue 3 §2: model hooks: what they cost, as a share of the time of decoding")
def test_overhead(capsys):
    """The same answer with and without hooks, in turn; the ratio is printed, and the logits are the same."""
    model = tiny(hidden_size=256, intermediate_size=512, num_hidden_layers=4)
    spent: dict[str, float] = {}
    logits = {}

    def decode(watch):
        talk = Talk(model, watch, None)
        begun = time.perf_counter()
        talk.say(talk.words(200), 60)
        if watch is not None:
            watch.turn_fields()
        return time.perf_counter() - begun, talk.logits

    for _ in range(3):
        for name in ("without", "with"):
            with ModelWatch(model) if name == "with" else contextmanager(lambda: iter([None]))() as watch:
                taken, logits[name] = decode(watch)
            spent[name] = min(taken, spent.get(name, taken))
    with capsys.disabled():
        print(f"\nModelWatch: {spent['with'] / spent['without']:.3f} times the time of decoding without it")
    assert (logits["with"] == logits["without"]).all()
