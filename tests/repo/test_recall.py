from __future__ import annotations

import json
import random

import numpy as np
import pytest

from benchmarks import recall
from tests.servers.llamacpp import ServerSettings


@pytest.mark.capability("issue 5 §3: token cost and recall of the formats on a real model, in the docs by script")
def test_the_page_shows_what_was_measured():
    """The tables are those of docs/recall.json and of the tokenizers now; every format has its interval."""
    kept = json.loads(recall.KEPT.read_text(encoding="utf-8"))
    assert recall.block(kept) in recall.PAGE.read_text(encoding="utf-8")
    assert [row["format"] for row in kept["rows"]] == [setting.name for setting in recall.SETTINGS]
    for row in kept["rows"]:
        low, high = row["interval"]
        assert low <= row["recall"] <= high
        assert [low, high] == [round(edge, 4) for edge in recall.interval(row["hits"])]


def test_interval():
    """Questions of a conversation that are right or wrong together widen it to scipy's of conversations."""
    stats = pytest.importorskip("scipy.stats")
    together = [3, 0, 3, 3, 0, 0, 3, 0, 3, 3] * 4
    want = stats.bootstrap(([hits / 3 for hits in together],), np.mean, method="percentile", rng=1).confidence_interval
    assert recall.interval(together) == pytest.approx((want.low, want.high), abs=0.02)
    low, high = recall.interval([2, 1] * 20)
    assert high - low < 0.4 * (want.high - want.low)
    assert recall.interval(together) == recall.interval(together)


def test_conversations():
    """The facts are said in the first turn only; the later ones speak of others."""
    for seed in range(20):
        facts, messages = recall.conversation(random.Random(seed), 6)
        later = " ".join(message["content"] for message in messages[2:])
        assert all(fact in messages[1]["content"] and fact not in later for fact in facts.values())


@pytest.mark.slow
def test_a_real_model_answers(llama):
    """One conversation on SmolLM2: marks cost tokens, state more; the model's own answer decides what is right."""
    rows = recall.measure(llama(ServerSettings(n_ctx=2048)).port, 1, 1)
    cost = {row["format"]: row["tokens"] for row in rows}
    assert cost["none"] == 0 < cost["boundary, compact"] < cost["state + boundary, compact"]
    assert cost["boundary, readable"] < cost["state + boundary, readable"]
    assert any(sum(row["hits"]) for row in rows)
    assert all(row["questions"] == 3 for row in rows)
