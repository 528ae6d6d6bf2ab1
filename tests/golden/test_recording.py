"""The committed recording says what its README says it says: checked from the data alone."""

import hashlib
import json
import re
import statistics
import uuid
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import stabilitykit

FOLDER = Path(stabilitykit.__file__).parent / "data" / "recordings"
JSONL = FOLDER / "llamacpp_smollm2.jsonl"
NPZ = FOLDER / "llamacpp_smollm2.embeddings.npz"
SCENARIOS = ("healthy", "overflow", "shift", "slowed")
RECORDS = [json.loads(line) for line in JSONL.read_text(encoding="utf-8").splitlines()]
TURNS = [row for row in RECORDS if "observe" not in row]
SAMPLES = [row["observe"] for row in RECORDS if "observe" in row]


def conversation(name: str) -> list[dict]:
    """Give the turns of one scenario."""
    return [turn for turn in TURNS if turn["scenario"] == name]


@pytest.mark.capability("issue 2 §1: recording and embeddings stay below 1 MB; their README names size and sha256")
def test_files_stay_small():
    """Both files together stay below 1 MB."""
    assert JSONL.stat().st_size + NPZ.stat().st_size < 1_000_000


@pytest.mark.capability("issue 2 §1: recording and embeddings stay below 1 MB; their README names size and sha256")
@pytest.mark.parametrize("path", [JSONL, NPZ], ids=lambda path: path.name)
def test_checksum_stands_in_the_readme(path):
    """The README names size and sha256 of the file that is here."""
    told = re.search(
        rf"\| {re.escape(path.name)} \| (\d+) \| `([0-9a-f]{{64}})` \|", (FOLDER / "README.md").read_text()
    )
    assert told is not None
    assert int(told[1]) == path.stat().st_size
    assert told[2] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_lines_are_in_order_of_time():
    """A turn stands where it ended, a sample where it was taken."""
    times = [row.get("observe", row)["timestamp_s"] for row in RECORDS]
    assert times == sorted(times)


@pytest.mark.parametrize("name", SCENARIOS)
def test_conversation_is_one_session_numbered_from_one(name):
    """A scenario is one UUIDv4 session whose turns count 1, 2, 3 ..."""
    turns = conversation(name)
    assert len(turns) >= 20
    (session,) = {turn["session_id"] for turn in turns}
    assert uuid.UUID(session).version == 4
    assert [turn["turn_id"] for turn in turns] == list(range(1, len(turns) + 1))


@pytest.mark.capability(
    "issue 2 §1: every recorded turn has plausible TTFT, ITL, usage, top-20 logprobs and a stored embedding"
)
def test_answered_turns_add_up():
    """RT is TTFT plus the gaps plus a short tail; the mean gap is the mean of the gaps; counts agree."""
    for turn in TURNS:
        if turn["error"] != "none":
            continue
        gaps = turn["itl_ms_per_token"]
        tail = turn["rt_ms"] - turn["ttft_ms"] - sum(gaps)
        assert -1.0 <= tail <= max(5 * turn["itl_ms"], 50.0)
        assert turn["itl_ms"] == pytest.approx(statistics.fmean(gaps), abs=0.02)
        assert turn["decode_tokens_per_s"] == pytest.approx(1e3 / turn["itl_ms"], rel=0.35)
        assert 0 <= turn["output_tokens"] - len(gaps) <= 3
        assert 0 < turn["prefill_ms"] <= turn["ttft_ms"]
        assert 0 <= turn["cached_tokens"] < turn["input_tokens"] == turn["sent_tokens"]
        assert turn["input_tokens"] <= turn["context_window_tokens"]
        assert turn["http_status"] == 200
        assert turn["finish_reason"] in {"stop", "length"}


def test_units_are_plausible():
    """Milliseconds, tokens and Unix seconds, not seconds, chunks or a monotonic clock."""
    for turn in TURNS:
        assert turn["timestamp_s"] > 1.6e9
        assert 5.0 < turn.get("itl_ms", 20.0) < 2_000.0
        assert 20.0 < turn.get("ttft_ms", 100.0) < 60_000.0
        assert turn["rt_ms"] > 1.0
    for sample in SAMPLES:
        assert 0.0 <= sample["kv_usage_ratio"] <= 1.0
        assert sample["running_requests"] >= 0 <= sample["waiting_requests"]


@pytest.mark.capability(
    "issue 2 §1: every recorded turn has plausible TTFT, ITL, usage, top-20 logprobs and a stored embedding"
)
def test_first_token_candidates_are_a_truncated_distribution():
    """Twenty distinct ids in falling order, whose mass does not exceed one."""
    for turn in TURNS:
        if turn["error"] != "none":
            assert "top_logprobs" not in turn
            continue
        assert len(set(turn["top_token_ids"])) == len(turn["top_logprobs"]) == 20
        assert all(a >= b for a, b in pairwise(turn["top_logprobs"]))
        assert 0.0 < np.exp(turn["top_logprobs"]).sum() <= 1.0 + 1e-3


@pytest.mark.capability(
    "issue 2 §1: the recording of a real llama.cpp server: healthy, refused, shifted and slowed conversations"
)
def test_healthy_has_no_trouble():
    """No refusal, no truncation, no trimming, most of the window free, and no jump of the rate."""
    turns = conversation("healthy")
    for turn in turns:
        assert (turn["error"], turn["is_history_truncated"], turn["is_host_trimmed"]) == ("none", False, False)
        assert turn["input_tokens"] + turn["output_tokens"] < 0.5 * turn["context_window_tokens"]
        assert turn["cached_tokens"] > 0.8 * turn["input_tokens"]
    rates = [turn["itl_ms"] for turn in turns]
    assert max(rates) < 2.0 * statistics.median(rates)


@pytest.mark.capability(
    "issue 2 §1: the recording of a real llama.cpp server: healthy, refused, shifted and slowed conversations"
)
def test_overflow_is_refused_and_recovers():
    """The history outgrows the window, the server says 400, and after the reset it answers again."""
    turns = conversation("overflow")
    refused = [turn for turn in turns if turn["error"] == "context_overflow"]
    first, last = refused[0]["turn_id"], refused[-1]["turn_id"]
    assert first > 10
    assert [turn["turn_id"] for turn in refused] == list(range(first, last + 1))
    for turn in refused:
        assert turn["http_status"] == 400
        assert turn["sent_tokens"] >= turn["context_window_tokens"]
        assert not {"ttft_ms", "itl_ms", "input_tokens", "output_tokens", "finish_reason"} & turn.keys()
    after = turns[last:]
    assert len(after) >= 5
    assert after[0]["is_host_trimmed"]
    assert {turn["error"] for turn in after} == {"none"}


@pytest.mark.capability(
    "issue 2 §1: the recording of a real llama.cpp server: healthy, refused, shifted and slowed conversations"
)
def test_shift_really_happened():
    """The log named shifts; each discarded tokens, and what the host then sent missed the cache."""
    turns = conversation("shift")
    shifted = [turn for turn in turns if turn["shift_count"] > 0]
    assert shifted
    assert shifted[0]["turn_id"] > 5
    for turn in turns:
        assert turn["is_history_truncated"] is (turn["shift_count"] > 0)
        if turn["shift_count"]:
            assert turn["is_server_truncated"]
            assert turn["shift_discarded_tokens"] > 0.3 * turn["context_window_tokens"]
            assert turn["input_tokens"] + turn["output_tokens"] > turn["context_window_tokens"]
    after = turns[shifted[0]["turn_id"]]
    assert after["cached_tokens"] < 0.5 * after["input_tokens"]


@pytest.mark.capability(
    "issue 2 §1: the recording of a real llama.cpp server: healthy, refused, shifted and slowed conversations"
)
def test_slowed_rises_with_the_other_streams_and_comes_back():
    """ITL is more than twice as long while other streams run, and falls back when they stop."""
    turns = conversation("slowed")
    loaded = [turn["turn_id"] for turn in turns if turn["competing_streams"]]
    before = statistics.median(turn["itl_ms"] for turn in turns[: loaded[0] - 1])
    during = statistics.median(turn["itl_ms"] for turn in turns[loaded[0] - 1 : loaded[-1]])
    after = statistics.median(turn["itl_ms"] for turn in turns[loaded[-1] :])
    assert during > 2.0 * before
    assert during > 2.0 * after
    assert after < 1.6 * before
    replica = turns[0]["replica"]
    start, end, later = (turns[i]["timestamp_s"] for i in (loaded[0] - 1, loaded[-1] - 1, loaded[-1]))
    seen = [(sample["timestamp_s"], sample["running_requests"]) for sample in SAMPLES if sample["replica"] == replica]
    busy = [running for time, running in seen if start < time < end]
    quiet = [running for time, running in seen if time > later]
    assert max(busy) > 2
    assert max(quiet) == 1


@pytest.mark.capability(
    "issue 2 §1: every recorded turn has plausible TTFT, ITL, usage, top-20 logprobs and a stored embedding"
)
def test_embeddings_belong_to_the_turns():
    """One unit vector per turn of each session, and the vectors differ."""
    with np.load(NPZ) as arrays:
        assert set(arrays.files) == {turn["session_id"] for turn in TURNS}
        for name in SCENARIOS:
            turns = conversation(name)
            vectors = arrays[turns[0]["session_id"]]
            assert vectors.dtype == np.float16
            assert vectors.shape == (len(turns), 384)
            assert np.linalg.norm(vectors.astype(np.float32), axis=1) == pytest.approx(1.0, abs=1e-2)
            assert len(np.unique(vectors, axis=0)) == len(turns)
