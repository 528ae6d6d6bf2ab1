"""What watching a stream costs: us a chunk, against parsing the same chunk's JSON, which every host does anyway."""

from __future__ import annotations

import json

from benchmarks.measure import Figure, significant, times
from stabilitykit.sources.openai import TurnRecorder

CHUNKS = 500
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1764657993, "model": "m"}


def chunk(**more):
    return HEAD | {
        "choices": [{"index": 0, "delta": {"content": " word"}, "finish_reason": None, **more}],
        "usage": None,
    }


def listed():
    tokens = [" word", " world", " ward", " work", " wordy"]
    top = [{"token": token, "logprob": -1.5, "bytes": list(token.encode())} for token in tokens]
    return {"logprobs": {"content": [{**top[0], "top_logprobs": top}]}}


SUBJECTS = {"plain": chunk(), "logprobs": chunk(**listed())}
TARGETS = {"plain": 2.0, "logprobs": 2.0}  # watching may cost what parsing costs, twice over


def run() -> list[Figure]:
    figures = []
    for name, body in SUBJECTS.items():
        line = json.dumps(body, separators=(",", ":")).encode()
        event = b"data: " + line + b"\n\n"

        def parse(line=line):
            for _ in range(CHUNKS):
                json.loads(line)

        def watch(body=body):
            call = TurnRecorder().request("c-1")
            for _ in call.watch([body] * CHUNKS):
                pass

        def feed(event=event):
            call = TurnRecorder().request("c-1")
            for _ in call.watch([event] * CHUNKS):
                pass

        # The best of some rounds: a neighbour on this machine can only add.
        rounds = zip(*(times([parse, watch, feed], rounds=1) for _ in range(15)), strict=True)
        parsed, watched, fed = (min(side) / CHUNKS / 1000 for side in rounds)
        note = f"{significant(watched)} us a parsed chunk of {len(line)} bytes, {significant(fed)} us from raw bytes"
        what = f"stream, {name} chunk: watching / json.loads"
        figures.append(Figure(f"stream_{name}_ratio", what, significant(watched / parsed), TARGETS[name], note))
    return figures
