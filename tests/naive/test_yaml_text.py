"""Random packs survive being written and loaded: the loader and the generators mean the same language."""

from __future__ import annotations

import pytest

from stabilitykit.rules.load import load_pack
from tests.naive.fakes import FAKES
from tests.naive.random_packs import random_pack
from tests.naive.random_turns import random_stream
from tests.naive.test_random import play
from tests.naive.yaml_text import to_yaml


@pytest.mark.parametrize("seed", range(40))
def test_loaded_pack_decides_like_the_written_one(seed, tmp_path):
    """The text of a random pack has no problem, and loading it changes no decision."""
    pack = random_pack(seed, detectors=FAKES)
    path = tmp_path / "pack.yaml"
    path.write_text(to_yaml(pack), encoding="utf-8")
    loaded = load_pack(str(path), detectors=FAKES)
    stream = random_stream(pack, seed, 40)
    assert play(loaded, stream) == play(pack, stream)
    assert [rule.scope for rule in loaded.rules] == [rule.scope for rule in pack.rules]
