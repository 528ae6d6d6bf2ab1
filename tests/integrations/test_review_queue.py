"""Lines of a real decision in real files: whole, bounded, and without what anybody said."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import pytest

from stabilitykit import Turn
from stabilitykit.engine.identity import hashed
from stabilitykit.errors import UsageError
from stabilitykit.integrations.review_queue import ReviewQueue
from tests.integrations.decisions import asking, slow

FEW = 600
"""Room for one entry, and not for two."""
WRITER = """
import sys
from stabilitykit import Engine, Turn
from stabilitykit.integrations.review_queue import ReviewQueue
decision = Engine.load("chat").evaluate(Turn(session_id=sys.argv[2], turn_id=1))
queue = ReviewQueue(sys.argv[1], key=b"secret", max_bytes=20_000, keep=1_000)
for _ in range(300):
    queue.put(decision, "people", text="word " * 20)
"""


@pytest.mark.capability(
    "issue 5 §6: send_to_review writes JSON lines: rules, numbers and a keyed hash, no text of anybody"
)
def test_an_entry(tmp_path):
    """Every queue that the decision names gets a line; the conversation is in it only as a hash of the host's key."""
    engine = asking(tmp_path, "{send_to_review: {queue: slow}}", "{send_to_review: {queue: all}}")
    queue = ReviewQueue(tmp_path / "review", key=b"secret", clock=lambda: 5)
    decision = slow(engine, "user@example.org", 7)
    assert queue.note(decision)
    (entry,) = queue.read("slow")
    assert [dict(e) for e in queue.read("all")] == [entry]
    assert entry["reasons"] == [{"rule": "slow", "signal": "itl_ms", "value": 100.0, "threshold": 80.0}]
    assert (entry["turn"], entry["state"], entry["fired"], entry["at_ns"]) == (7, "healthy", ["slow"], 5)
    assert "example" not in (tmp_path / "review" / "slow.jsonl").read_text(encoding="utf-8")
    assert (tmp_path / "review" / "slow.jsonl").stat().st_mode & 0o077 == 0
    other = ReviewQueue(tmp_path / "other", key=b"another")
    other.note(decision)
    assert next(other.read("slow"))["session"] != entry["session"]
    assert not queue.note(engine.evaluate(Turn(session_id="c-9", itl_ms=10.0)))


def test_two_tenants(tmp_path):
    """Sessions of one id in two tenants are two conversations; the default tenant's hash is that of the id alone."""
    engine, queue = asking(tmp_path, "{send_to_review: {}}"), ReviewQueue(tmp_path / "review", key=b"secret")
    for tenant in ("one", "two", "", "one"):
        assert queue.note(slow(engine, "c-1", tenant=tenant))
    one, two, default, again = (entry["session"] for entry in queue.read())
    assert (len({one, two, default}), again) == (3, one)
    assert default == hashed("c-1", b"secret")


def test_text_only_when_it_is_given(tmp_path):
    """The host's text stands in the line, on one line, whatever is in it."""
    queue = ReviewQueue(tmp_path, key=b"secret")
    decision = slow(asking(tmp_path, "{send_to_review: {}}"))
    queue.note(decision, text="one\ntwo\u2028\ud800")
    queue.note(decision)
    first, second = queue.read()
    assert (first["text"], "text" in second) == ("one\ntwo\u2028\ud800", False)


def test_files_are_bounded(tmp_path):
    """A full file is retired, the newest `keep` of them stay, and what is read is the newest entries in order."""
    numbers = itertools.count()
    queue = ReviewQueue(tmp_path, key=b"secret", max_bytes=2_000, keep=2, clock=lambda: next(numbers))
    decision = slow(asking(tmp_path, "{send_to_review: {}}"))
    for _ in range(60):
        queue.note(decision)
    files = list(tmp_path.glob("default*.jsonl"))
    assert len(files) == 3
    assert all(file.stat().st_size <= 2_000 for file in files)
    times = [entry["at_ns"] for entry in queue.read()]
    assert times == sorted(times)
    assert len(times) > 8


def test_several_processes_lose_nothing(tmp_path):
    """Four processes write at once while files are retired: every line is whole and there."""
    jobs = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), f"c-{k}"]) for k in range(4)]
    assert [job.wait() for job in jobs] == [0] * 4
    lines = [line for file in tmp_path.glob("people*.jsonl") for line in file.read_text("utf-8").splitlines()]
    sessions = [json.loads(line)["session"] for line in lines]
    assert sorted(sessions.count(s) for s in set(sessions)) == [300] * 4


def test_a_torn_line(tmp_path):
    """What a crash cut off is left out, and the lines around it are read."""
    queue = ReviewQueue(tmp_path, key=b"secret")
    decision = slow(asking(tmp_path, "{send_to_review: {}}"))
    queue.note(decision)
    with (tmp_path / "default.jsonl").open("ab") as file:
        file.write(b'{"turn": 3, "st\n')
    queue.note(decision)
    assert len(list(queue.read())) == 2


@pytest.mark.parametrize("name", ["../up", "a/b", "", "x" * 65, "a.b"])
def test_names(tmp_path, name):
    """A queue's name never leaves the folder."""
    with pytest.raises(UsageError):
        ReviewQueue(tmp_path, key=b"secret").put(slow(asking(tmp_path, "{send_to_review: {}}")), name)


def test_a_disk_that_fails(tmp_path, caplog):
    """A folder that cannot be made is told in the log, not to the host; a key must be one."""
    (tmp_path / "file").write_text("")
    queue = ReviewQueue(tmp_path / "file", key=b"secret")
    assert not queue.note(slow(asking(tmp_path, "{send_to_review: {}}")))
    assert "review_failed" in caplog.text
    with pytest.raises(UsageError):
        ReviewQueue(tmp_path, key=b"")


def test_a_line_without_its_end(tmp_path):
    """What a full disk left without a line feed is ended before the next line, which is read."""
    queue, decision = ReviewQueue(tmp_path, key=b"secret"), slow(asking(tmp_path, "{send_to_review: {}}"))
    (tmp_path / "default.jsonl").write_bytes(b'{"turn": 3, "st')
    queue.note(decision)
    queue.note(decision)
    assert len(list(queue.read())) == 2


@pytest.mark.parametrize("times", [[5] * 99, [*range(99, 0, -1)], [2**63] * 99, [0] * 99])
def test_a_clock_that_stands_still_or_goes_back(tmp_path, times):
    """No full file is written over, and they are read in the order in which they were written."""
    ticks = iter(times)
    queue = ReviewQueue(tmp_path, key=b"secret", max_bytes=FEW, keep=50, clock=lambda: next(ticks))
    decision = slow(asking(tmp_path, "{send_to_review: {}}"))
    for number in range(12):
        queue.put(decision, text=str(number))
    assert [entry["text"] for entry in queue.read()] == [str(number) for number in range(12)]


@pytest.mark.parametrize("wrong", [{"key": "text"}, {"max_bytes": 0}, {"max_bytes": float("nan")}, {"keep": -1}])
def test_settings_that_cannot_be(tmp_path, wrong):
    """They are refused at once, not in the log at the first review."""
    with pytest.raises(UsageError):
        ReviewQueue(tmp_path, **{"key": b"secret", **wrong})


def test_foreign_files_and_lines(tmp_path):
    """Files that look like full ones and lines that nest too deep are passed over."""
    queue, decision = (
        ReviewQueue(tmp_path, key=b"secret", max_bytes=FEW),
        slow(asking(tmp_path, "{send_to_review: {}}")),
    )
    (tmp_path / "default.x-y.jsonl").write_bytes(b"{}\n")
    (tmp_path / "default.jsonl").write_bytes(b"[" * 100_000 + b"\n")
    assert queue.note(decision)
    assert len(list(queue.read())) == 1
    assert (tmp_path / "default.x-y.jsonl").exists()


def test_no_decision_at_all(tmp_path, caplog):
    """What is no decision is told in the log."""
    assert not ReviewQueue(tmp_path, key=b"secret").note(None)  # type: ignore[arg-type]
    assert "review_failed" in caplog.text


def test_a_text_larger_than_a_file(tmp_path, caplog):
    """It is refused with both sizes, told in the log by ``note``, and no file is retired or made larger for it."""
    queue = ReviewQueue(tmp_path, key=b"secret", max_bytes=2_000)
    decision = slow(asking(tmp_path, "{send_to_review: {}}"))
    queue.note(decision, text="a short one")
    with pytest.raises(UsageError, match=r"takes \d{4} bytes, a file at most 2000"):
        queue.put(decision, text="x" * 2_000)
    assert not queue.note(decision, text="x" * 2_000)
    assert "review_failed" in caplog.text
    (file,) = tmp_path.glob("default*.jsonl")
    assert file.stat().st_size <= 2_000
    assert [entry["text"] for entry in queue.read()] == ["a short one"]
