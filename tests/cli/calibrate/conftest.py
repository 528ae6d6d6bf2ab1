"""Dialogues made of topics: messages are near the centre of their topic, the first of a topic is longer."""

from __future__ import annotations

import json

import numpy as np
import pytest

DIM, TOPICS = 12, 5


def make(folder, name, *, seed=0, count=40, is_told_apart=True):
    """Write the embeddings and the turns of some dialogues; gives both paths."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(TOPICS, DIM))
    rows, shift, lines = [], [], []
    for _ in range(count):
        topic, turns = int(rng.integers(TOPICS)), []
        for k in range(10):
            is_new = k > 0 and rng.random() < 0.25
            topic = (topic + 1) % TOPICS if is_new else topic
            rows.append((centres[topic] if is_told_apart else 0) + 0.5 * rng.normal(size=DIM) + 1.0)
            shift.append(int(is_new))
            turns.append({"text": "word " * int(rng.integers(3, 9)), "intent": f"topic-{topic}"})
        lines.append(json.dumps({"turns": turns}))
    embeddings, told = folder / f"{name}.npz", folder / f"{name}.jsonl"
    np.savez(embeddings, E=np.array(rows, np.float16), n_turns=np.full(count, 10), shift=np.array(shift, np.uint8))
    told.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return embeddings, told


@pytest.fixture
def clear(tmp_path):
    """Dialogues whose topics the embedding tells apart."""
    return make(tmp_path, "clear")


@pytest.fixture
def chance(tmp_path):
    """Dialogues whose embedding knows nothing of the topic."""
    return make(tmp_path, "chance", is_told_apart=False)
