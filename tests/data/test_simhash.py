"""Whether a snapshot has changed, from the bits of its signature, on pairs of real sentence embeddings."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.subjects import simhash


@pytest.mark.slow
@pytest.mark.capability("issue 6: SimHash: the decision at cosine .72 is the exact one for .93 of pairs, in one table")
def test_targets_and_lines(shared_data, monkeypatch):
    """256 bits decide as well as stored hyperplanes, far better than the source's limit; shuffled truth is a coin."""
    monkeypatch.setattr(simhash, "BITS", (256,))
    report = simhash.run(shared_data)
    assert [t.what for t in report.targets if not t.is_met] == []
    assert {line.kind for line in report.lines} == {"trivial", "source", "reference", "ours", "check"}
    for of in ("embeddings", "grown"):
        found = {line.kind: line.figures["agreement"] for line in report.lines if line.of == of}
        assert found["ours"] == pytest.approx(found["reference"], abs=0.01)
        assert found["source"] < 0.7
        assert found["check"] == pytest.approx(0.5, abs=0.03)


def test_pairs_have_the_cosines_that_were_drawn(shared_data):
    """Evenly between .3 and 1, both vectors of length 1."""
    u, v, _ = simhash.pairs_of(shared_data / "dialogues", np.random.default_rng(1))
    found = simhash.cosines(u, v)
    assert np.linalg.norm(np.vstack([u, v]), axis=1) == pytest.approx(1.0)
    assert (found.min(), np.median(found), found.max()) == pytest.approx((0.3, 0.65, 1.0), abs=0.01)
