from __future__ import annotations

import json

import numpy as np
import pytest

from stabilitykit.cli.probe.diff import compare, read_probe


@pytest.mark.capability("issue 4 §5: probe diff: throughput, first-token p99 and cache hit ratio, with intervals")
def test_two_probes_of_a_live_server(run, probe, tmp_path):
    """Every figure of both, the change, its interval, and whether it is beyond chance."""
    probe("--sessions", 8, output="a")
    probe("--sessions", 8, "--max-tokens", 2, output="b")
    ran = run("probe", "diff", tmp_path / "a.json", tmp_path / "b.json")
    assert ran.code == 0, ran.err
    for words in ("tokens/s", "first token p99, ms", "cache hits", "95 % of it"):
        assert words in ran.out
    assert "different plan" in ran.err
    changes = {
        c["figure"]: c
        for c in run("probe", "diff", tmp_path / "a.json", tmp_path / "b.json", "--json").records[0]["changes"]
    }
    assert "one value a load" in ran.out
    assert (changes["tokens/s"]["interval"], changes["tokens/s"]["is_sure"]) == (None, False)
    for name in ("first token p99, ms", "cache hits"):
        low, high = changes[name]["interval"]
        assert low <= changes[name]["change"] <= high
    figures = json.loads((tmp_path / "a.json").read_text())["figures"]
    assert changes["tokens/s"]["before"] == pytest.approx(figures["output_tokens_per_s"])
    assert changes["first token p99, ms"]["before"] == figures["ttft_ms"]["p99"]
    assert changes["cache hits"]["before"] == pytest.approx(figures["cache_hit_ratio"])


def written(path, seed, scale=1.0, talks=8, **more):
    """Write figures whose first tokens are drawn, times ``scale``."""
    drawn = np.random.default_rng(seed)
    turns = [
        {"session_id": f"s{k}", "turn_id": t, "ttft_ms": scale * drawn.lognormal(5, 0.2), "itl_ms": 10.0,
         "input_tokens": 100, "cached_tokens": 80, "output_tokens": 20}
        for k in range(talks) for t in range(12)
    ]  # fmt: skip
    told = {"stabilitykit_probe": 1, "prompts": {"sha256": "x"}, "figures": {"seconds": 9.0}, "per_turn": turns, **more}
    path.write_text(json.dumps(told))
    return read_probe(path)


def test_what_is_beyond_chance(tmp_path, monkeypatch):
    """Of ten pairs without a difference few are called, of ten at half the speed all."""
    monkeypatch.setattr("stabilitykit.cli.probe.diff._DRAWS", 100)
    same, slow = 0, 0
    for seed in range(10):
        a = written(tmp_path / "a.json", 2 * seed)
        for scale in (1.0, 2.0):
            b = written(tmp_path / "b.json", 2 * seed + 1, scale)
            (change,) = [c for c in compare(a, b) if c.figure == "first token p50, ms"]
            if scale == 1.0:
                same += change.is_sure
            else:
                slow += change.is_sure
    assert same <= 3
    assert slow == 10


def test_equal_figures_are_no_change(tmp_path):
    """A gap that is the same everywhere has an interval of zero width at 0: not beyond chance."""
    a, b = written(tmp_path / "a.json", 1), written(tmp_path / "b.json", 2)
    gaps = {c.figure: c for c in compare(a, b)}["gap of a turn p99, ms"]
    assert (gaps.change, gaps.interval, gaps.is_sure) == (0.0, (0.0, 0.0), False)


@pytest.mark.parametrize(("talks", "has_interval"), [((8, 8), True), ((7, 8), False), ((8, 7), False), ((1, 1), False)])
def test_few_conversations_have_no_interval(run, tmp_path, talks, has_interval):
    """Below eight on either side there is the change alone, and it is not called sure."""
    for name, count in zip("ab", talks, strict=True):
        written(tmp_path / f"{name}.json", 1, talks=count)
    changes = compare(read_probe(tmp_path / "a.json"), read_probe(tmp_path / "b.json"))
    assert {c.figure: c.interval is not None for c in changes if c.change is not None} == {
        c.figure: has_interval and c.figure != "tokens/s" for c in changes
    }
    ran = run("probe", "diff", tmp_path / "a.json", tmp_path / "b.json")
    assert ("too few conversations" in ran.out) is not has_interval
    assert "one value a load" in ran.out


def test_other_prompts(run, tmp_path):
    """Loads of different prompts are not compared."""
    written(tmp_path / "a.json", 1)
    written(tmp_path / "b.json", 1, prompts={"sha256": "y"})
    ran = run("probe", "diff", tmp_path / "a.json", tmp_path / "b.json")
    assert ran.code == 2
    assert "different prompts" in ran.err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"stabilitykit_probe": 2}', '{"stabilitykit_probe": 1}'])
def test_no_figures(run, tmp_path, text):
    """A file of anything else is exit 2 and its name."""
    (tmp_path / "a.json").write_text(text)
    ran = run("probe", "diff", tmp_path / "a.json", tmp_path / "gone.json")
    assert ran.code == 2
    assert "a.json" in ran.err


def test_deeply_nested(run, tmp_path):
    """JSON deeper than Python reads is no probe."""
    path = tmp_path / "deep.json"
    path.write_text("[" * 200_000)
    ran = run("probe", "diff", path, path)
    assert (ran.code, "no figures of a probe" in ran.err) == (2, True)
