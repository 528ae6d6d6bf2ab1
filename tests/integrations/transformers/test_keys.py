from __future__ import annotations

import numpy as np
import pytest

from stabilitykit.errors import UsageError
from stabilitykit.integrations.transformers import rope_of, turn_keys
from tests.integrations.transformers.models import DEEPSEEK, Talk, tiny

pytestmark = pytest.mark.oracle
SCALED = {
    "default": {},
    "linear": {"factor": 4.0},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 512},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 1024},
}  # fmt: skip


@pytest.mark.parametrize("kind", SCALED)
def test_frequencies_are_the_models(kind):
    """What is read of a configuration turns by the angles of the model's own embedding."""
    model = tiny(rope_parameters={"rope_type": kind, "rope_theta": 50000.0, **SCALED[kind]})
    given = model.model.rotary_emb.inv_freq.numpy()
    np.testing.assert_allclose(rope_of(model.config).frequencies(), given, rtol=2e-6)


def test_part_of_a_head():
    """A quarter of each head turns."""
    assert rope_of(tiny("StableLm", partial_rotary_factor=0.25).config).dim == 4


def test_what_cannot_be_turned():
    """A shared latent, a kind of embedding that is not known, and rotations for another number of keys."""
    with pytest.raises(UsageError, match="MLA"):
        rope_of(tiny("DeepseekV3", **DEEPSEEK).config)
    config = tiny().config
    config.rope_parameters = {"rope_type": "longrope"}
    with pytest.raises(UsageError, match="longrope"):
        rope_of(config)
    model = tiny()
    talk = Talk(model, None, None)
    talk.step(talk.words(5))
    before = [layer.keys.clone() for layer in talk.cache.layers]
    with pytest.raises(UsageError, match="4 rotations for layers of 5 keys"):
        turn_keys(talk.cache, [1, 1, 1, 1], rope_of(model.config))
    assert all((layer.keys == keys).all() for layer, keys in zip(talk.cache.layers, before, strict=True))


def test_there_and_back():
    """Turned by some positions and back: the keys are what they were, to a few roundings."""
    model = tiny()
    talk = Talk(model, None, None)
    talk.step(talk.words(6))
    before = talk.cache.layers[0].keys.clone()
    for sign in (1, -1):
        turn_keys(talk.cache, sign * np.arange(6), rope_of(model.config))
    assert (talk.cache.layers[0].keys - before).abs().max() < 1e-6
