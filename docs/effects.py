"""Before and after of each mitigation of the service, from the packaged recording of a real server.

``python -m docs.effects`` writes them into the how-to pages, between ``<!-- effect: NAME -->`` and ``<!-- end -->``;
a test keeps them fresh.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from docs.inside_effects import INSIDE
from docs.tables import table
from stabilitykit import Engine, Turn
from stabilitykit.decision import Decision
from stabilitykit.integrations.gate import Gate
from stabilitykit.integrations.review_queue import ReviewQueue
from stabilitykit.integrations.sampling import DiagnosticSampler
from stabilitykit.sample import Sample
from stabilitykit.sources.recording import LogFile, shipped_recording

PLACE = re.compile(r"(<!-- effect: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
HOW_TO = Path(__file__).parent / "how-to"
FENCE = re.compile(r"^```yaml\n(stabilitykit: .*?)^```$", re.MULTILINE | re.DOTALL)
SLOWED = "678b962f"
"""The conversation of the recording that other streams slowed."""


def engine_of(page: str) -> Engine:
    """Load the pack that a page shows."""
    pack = FENCE.search((HOW_TO / f"{page}.md").read_text(encoding="utf-8"))
    assert pack, page
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.yaml"
        path.write_text(pack[1], encoding="utf-8")
        return Engine.load(str(path))


def decided(engine: Engine) -> Iterator[tuple[Turn | Sample, Decision]]:
    """Replay the recording, one decision after the other."""
    for entry in LogFile(shipped_recording()).entries():
        if isinstance(entry, Turn):
            yield entry, engine.evaluate(entry)
        else:
            yield entry, engine.observe(replica=entry.replica, timestamp_s=entry.timestamp_s, **entry.signals)


def refuse_new() -> str:
    """Let a new conversation knock at every sample: how full was the cache when it was let in."""
    now = 0.0
    gate = Gate(clock=lambda: now)
    rows = Counter[str]()
    engine = engine_of("refuse-new-conversations")
    for number, (entry, decision) in enumerate(decided(engine)):
        now = float(entry.timestamp_s)
        gate.note(decision)
        if isinstance(entry, Turn):
            continue
        full = "full" if entry.signals["kv_usage_ratio"] > 0.8 else "room"
        rows[f"before {full}"] += 1
        rows[f"after {full}"] += gate.enter(f"new-{number}").retry_after_s is None
    return table(
        ("new conversations let in", "before", "after"),
        [
            ("while the KV cache was over 80 % full", str(rows["before full"]), str(rows["after full"])),
            ("while there was room", str(rows["before room"]), str(rows["after room"])),
        ],
    )


def canned_reply() -> str:
    """Count what the user sees of the turns that the server refused."""
    engine = engine_of("answer-with-a-prepared-text")
    turns = [(entry, decision) for entry, decision in decided(engine) if isinstance(entry, Turn)]
    failed = [decision for entry, decision in turns if entry.error not in ("none", None)]
    replaced = sum(any(a.name == "canned_reply" for a in decision.actions) for decision in failed)
    return table(
        ("turns", "before", "after"),
        [
            ("answered by the model", str(len(turns) - len(failed)), str(len(turns) - len(failed))),
            ("the user sees an error", str(len(failed)), str(len(failed) - replaced)),
            ("the user sees the prepared text", "0", str(replaced)),
        ],
    )


def switch_model() -> str:
    """Tell which slow turns of the slowed conversation the big model would still answer."""
    gate, counts = Gate(), Counter[tuple[bool, str]]()
    for entry, decision in decided(Engine.load("chat")):
        if isinstance(entry, Turn) and str(entry.session_id).startswith(SLOWED):
            counts[float(entry.itl_ms) > 80.0, gate.model(str(entry.session_id), "big")] += 1
            gate.note(decision)
    rows = []
    for is_slow, what in ((True, "slow turns (over 80 ms between tokens)"), (False, "other turns")):
        big, light = counts[is_slow, "big"], counts[is_slow, "light"]
        rows.append((what, f"{big + light} by the big model", f"{big} by the big model, {light} by the light one"))
    return table(("turns of the slowed conversation", "before", "after"), rows)


def throttle() -> str:
    """Let as many requests of the slowed conversation knock as the server had running, at every sample."""
    gate, counts, session = Gate(), Counter[str](), ""
    for entry, decision in decided(engine_of("throttle-a-conversation")):
        if isinstance(entry, Turn):
            session = str(entry.session_id)
            gate.note(decision)
        elif session.startswith(SLOWED):
            asked = int(entry.signals["running_requests"])
            admitted = sum(gate.enter(session).retry_after_s is None for _ in range(asked))
            for _ in range(admitted):
                gate.leave(session)
            counts["asked"] += asked
            counts["admitted"] += admitted
    asked, admitted = counts["asked"], counts["admitted"]
    return table(
        ("requests of the slowed conversation", "before", "after"),
        [("served at once", str(asked), str(admitted)), ("told to wait", "0", str(asked - admitted))],
    )


def send_to_review() -> str:
    """Count what there is to read."""
    turns = 0
    with tempfile.TemporaryDirectory() as folder:
        queue = ReviewQueue(folder, key=b"docs", clock=lambda: 0)
        for entry, decision in decided(engine_of("review-a-conversation")):
            if isinstance(entry, Turn):
                turns += 1
                queue.note(decision)
        entries = list(queue.read("quality"))
    rules = Counter(rule for entry in entries for rule in entry["fired"])
    named = ", ".join(f"`{rule}` {count}" for rule, count in sorted(rules.items()))
    return table(
        ("to read", "before", "after"),
        [("turns", str(turns), str(len(entries))), ("why", "nobody knows which", named)],
    )


def sample_diagnostics() -> str:
    """Count the turns that are looked at closely, with and without a match."""
    quiet, raised = (DiagnosticSampler(key=b"docs", rate=0.05, hold_turns=5) for _ in range(2))
    counts = Counter[str]()
    for entry, decision in decided(engine_of("look-closely-at-some-turns")):
        if isinstance(entry, Turn):
            raised.note(decision)
            kind = "bad" if decision.matches else "good"
            counts[kind] += 1
            for name, sampler in (("before", quiet), ("after", raised)):
                counts[f"{name} {kind}"] += sampler.is_picked(decision.session_id, decision.turn_id)
    rows = [
        (what, *(f"{counts[f'{name} {kind}']} of {counts[kind]}" for name in ("before", "after")))
        for kind, what in (("bad", "turns on which a rule matched"), ("good", "other turns"))
    ]
    return table(("looked at closely", "before", "after"), rows)


def emit_metric() -> str:
    """Count what a dashboard would show."""
    events = Counter(
        action.params["name"]
        for _, decision in decided(Engine.load("chat"))
        for action in decision.actions
        if action.name == "emit_metric"
    )
    rows = [(f'`stabilitykit_events_total{{name="{name}"}}`', "-", str(events[name])) for name in sorted(events)]
    return table(("counter", "before", "after"), rows)


EFFECTS: dict[str, Callable[[], str]] = {
    "refuse_new": refuse_new,
    "canned_reply": canned_reply,
    "switch_model": switch_model,
    "throttle": throttle,
    "send_to_review": send_to_review,
    "sample_diagnostics": sample_diagnostics,
    "emit_metric": emit_metric,
    **INSIDE,
}


def filled(text: str) -> str:
    """Give a page with its effects written anew."""
    return PLACE.sub(lambda found: f"{found[1]}\n{EFFECTS[found[2]]()}\n{found[3]}", text)


def pages() -> Iterator[Path]:
    """Give the pages that hold an effect."""
    return (page for page in sorted(HOW_TO.glob("*.md")) if PLACE.search(page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    for page in pages():
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
