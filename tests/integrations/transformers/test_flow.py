from __future__ import annotations

from typing import Any

import pytest

from stabilitykit.errors import UsageError
from stabilitykit.integrations.transformers import RotaryUse, check_position_flow
from tests.integrations.transformers.models import DEEPSEEK, tiny

pytestmark = pytest.mark.oracle
ATTENTION = [f"model.layers.{k}.self_attn" for k in range(3)]
FAMILIES: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Mistral": {"sliding_window": 4},
    "Gemma2": {"head_dim": 16},
    "Qwen3": {"head_dim": 16},
    "DeepseekV3": DEEPSEEK,
}


def change_positions(model, change):
    """Change what the rotary embedding of a model is given."""

    def hook(module, args, named):
        return args, {**named, "position_ids": change(named["position_ids"])}

    model.model.rotary_emb.register_forward_pre_hook(hook, with_kwargs=True)
    return model


@pytest.mark.capability("issue 3 §2: check_position_flow: right models of five families pass, each layer is named")
@pytest.mark.parametrize("family", FAMILIES)
def test_models_as_they_are(family):
    """Position ids reach the rotary embedding of every layer as they were given."""
    flow = check_position_flow(tiny(family, **FAMILIES[family]))
    assert flow.is_unmodified
    assert [use.module for use in flow.uses] == ATTENTION


@pytest.mark.capability("issue 3 §2: check_position_flow: an offset added on the way is named in every layer")
def test_an_added_offset():
    """A patch that adds 3 to the position ids is found wherever they are used."""
    flow = check_position_flow(change_positions(tiny(), lambda ids: ids + 3))
    assert not flow.is_unmodified
    assert flow.problems == tuple(RotaryUse(name, "add 3 on position ids") for name in ATTENTION)


@pytest.mark.capability("issue 3 §2: check_position_flow: one layer that ignores position ids is found, and only that")
def test_a_layer_that_ignores_them():
    """One layer counts its own positions."""
    model = tiny()

    def hook(module, args, named):
        count = named["position_ids"].new_ones(named["position_ids"].shape).cumsum(-1) - 1
        return args, {**named, "position_embeddings": model.model.rotary_emb(args[0], position_ids=count)}

    model.model.layers[1].register_forward_pre_hook(hook, with_kwargs=True)
    flow = check_position_flow(model)
    assert flow.problems == (RotaryUse(ATTENTION[1], "the angles do not come from position_ids"),)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda ids: ids.bfloat16(), "position ids are torch.bfloat16, exact up to 256 only"),
        (lambda ids: ids % 4, "remainder 4 on position ids"),
        (lambda ids: ids * 2, "mul 2 on position ids"),
        (lambda ids: ids.flip(-1), "flip on position ids"),
        (lambda ids: ids.clamp(max=5), "clamp 5 on position ids"),
    ],
)
def test_other_changes(change, problem):
    """Whatever else is done to them is named; bfloat16 knows no odd numbers above 256 (formulas B4.1)."""
    flow = check_position_flow(change_positions(tiny(num_hidden_layers=1), change))
    (use,) = flow.problems
    assert use.problem == problem


def test_changes_that_are_none():
    """Adding 0, multiplying by 1, another shape and back, a wider number format."""

    def same(ids):
        return ((ids + 0) * 1).unsqueeze(0).squeeze(0).int().long()

    assert check_position_flow(change_positions(tiny(num_hidden_layers=1), same)).is_unmodified


def test_layers_without_a_rotary_embedding():
    """By design of the configuration they are passed over; where they are lost they are named."""
    assert check_position_flow(tiny("SmolLM3", no_rope_layers=[1, 0, 1])).is_unmodified
    model = tiny("SmolLM3", no_rope_layers=[1, 0, 1])
    model.config.no_rope_layers = [1, 1, 1]
    assert check_position_flow(model).problems == (RotaryUse(ATTENTION[1], "no rotary embedding is used"),)


def test_a_model_that_cannot_be_traced():
    """Frequencies that depend on the greatest position: refused in our words."""
    scaled = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}
    with pytest.raises(UsageError, match="cannot be traced"):
        check_position_flow(tiny(rope_parameters=scaled))
