"""A context shift of a real llama.cpp server: its log gives the tokens it kept and the positions that come next."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks.record.client import post_json
from stabilitykit import Engine, Turn
from stabilitykit.mitigations.positions import compensate_positions, kept_after_shift
from tests.servers.llamacpp import ServerSettings

SHIFT = re.compile(r"slot context shift, n_keep = (\d+), n_left = (\d+), n_discard = (\d+)")


def complete(port, prompt, tokens, keep):
    """Complete text or tokens greedily, never ending early."""
    body = {"prompt": prompt, "n_predict": tokens, "n_keep": keep, "ignore_eos": True, "temperature": 0}
    return post_json(port, "/completion", {**body, "return_tokens": True, "cache_prompt": True})


@pytest.mark.capability(
    "issue 5 §4: a real llama.cpp context shift, n_keep, n_left and n_discard of its log: the offsets"
)
@pytest.mark.parametrize(("keep", "tokens"), [(0, 300), (4, 300), (4, 520)])
def test_offsets(llama, tiny_gguf, keep, tokens):
    """What we say it kept is in its cache, token for token, and the next position is the number it reports."""
    server = llama(ServerSettings(n_ctx=256, context_shift=True, model=str(tiny_gguf)))
    logged = len(server.log())
    prompt = post_json(server.port, "/tokenize", {"content": "Hello there, how are you", "add_special": True})["tokens"]
    told = complete(server.port, prompt, tokens, keep)
    held, next_position, place = np.asarray([*prompt, *told["tokens"]]), 0, 0
    shifts = [tuple(map(int, found)) for found in SHIFT.findall(server.log()[logged:])]
    assert len(shifts) == (1 if tokens == 300 else 3)
    for n_keep, n_left, n_discard in shifts:
        kept = kept_after_shift(n_keep, n_left, n_discard)
        done = compensate_positions(kept, n_sink=n_keep, max_position=256)
        assert (done.why, n_keep) == ("", keep)
        assert set(done.rotation[n_keep:].tolist()) == {-n_discard}
        place = n_keep + n_left
        held = np.concatenate([held[kept], held[place:]])
        next_position = done.next_position + len(held) - len(kept)
    # The last token was drawn and not yet read.
    assert told["tokens_cached"] == next_position - 1 == len(held) - 1
    again = complete(server.port, held.tolist(), 1, keep)
    assert again["timings"]["cache_n"] == len(held) - 1
    off_by_one = complete(server.port, np.delete(held, keep + 1).tolist(), 1, keep)
    assert off_by_one["timings"]["cache_n"] <= keep + 2


@pytest.mark.capability(
    "issue 5 §4: positions of a host that does not know of llama.cpp's shift are called, right ones not"
)
def test_a_host_that_counts_on(llama, tiny_gguf):
    """After the shift the next place in the cache is what the server reports; a host that counts all tokens is off."""
    server = llama(ServerSettings(n_ctx=256, context_shift=True, model=str(tiny_gguf)))
    logged = len(server.log())
    told = complete(server.port, "Hello there, how are you", 300, 0)
    ((n_keep, n_left, n_discard),) = [tuple(map(int, found)) for found in SHIFT.findall(server.log()[logged:])]
    place = told["tokens_cached"]
    counted = told["tokens_evaluated"] + told["tokens_predicted"] - 1
    done = compensate_positions(kept_after_shift(n_keep, n_left, n_discard), n_sink=n_keep)
    fired = {}
    for name, position in (("counted", counted), ("ours", done.next_position + counted - n_keep - n_left)):
        turn = Turn(session_id=name, position_ids=[position], cache_positions=[place], is_mla=False)
        fired[name] = Engine.load("integrity").evaluate(turn).fired
    assert fired == {"counted": ("positions-broken",), "ours": ()}
