"""Before and after of what is done to a conversation, its cache and its mask, by the packaged recording."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record.scenarios import SCENARIOS, load_prompts
from docs.tables import table
from stabilitykit import Engine, Turn
from stabilitykit.actions import Action
from stabilitykit.engine.snapshots import SessionSnapshots
from stabilitykit.mitigations.applying import APPLIERS
from stabilitykit.mitigations.directives import directive
from stabilitykit.mitigations.kv import KVPolicy
from stabilitykit.mitigations.kv.acting import Done, KVCache, carry_out
from stabilitykit.mitigations.masks import mask_rows, repair_mask, row_parity, unpack
from stabilitykit.mitigations.outcome import Lent
from stabilitykit.mitigations.positions import compensate_positions, kept_after_shift
from stabilitykit.sources.block_tracker import BlockTracker
from stabilitykit.sources.recording import LogFile, shipped_recording

REFUSED = "c2100622"
"""The conversation of the recording that outgrew its window."""
BLOCK = 16
"""Tokens of a KV block."""


def recorded(session: str = "") -> list[Turn]:
    """Give the recorded turns, of one conversation or of all."""
    entries = LogFile(shipped_recording()).entries()
    return [e for e in entries if isinstance(e, Turn) and str(e.session_id).startswith(session)]


def rewritten(action: str, params: dict[str, Any]) -> str:
    """Carry out one action on the user turns of the conversation that outgrew its window."""
    prompts = load_prompts()["overflow"]
    chat = [{"role": "system", "content": prompts["system"]}]
    chat += [{"role": "user", "content": text} for text in prompts["user"]]
    done = APPLIERS[action](chat, directive(Action(action, params)), Lent())
    return table(
        ("what is sent", "before", "after"),
        [
            ("messages", str(len(chat)), str(len(done.messages))),
            ("tokens", str(done.details["tokens_before"]), str(done.details["tokens_after"])),
        ],
    )


def rollback_snapshot() -> str:
    """Go back from the first refusal of the conversation that outgrew its window."""
    engine, texts, turns = Engine.load("chat"), load_prompts()["overflow"]["user"], recorded(REFUSED)
    kept = SessionSnapshots(engine, turns[0].session_id)
    last = next(number for number, entry in enumerate(turns) if entry.error == "context_overflow")
    for number, entry in enumerate(turns[: last + 1], 1):
        engine.evaluate(entry)
        kept.take([{"role": "user", "content": text} for text in texts[:number]])
    back = kept.rollback(turns=1)
    known = engine.peek(Turn(session_id=turns[0].session_id)).turn_id - 1
    return table(
        ("the conversation", "before", "after"),
        [
            ("user messages", str(last + 1), str(len(back))),
            ("its latest turn, as the engine has it", str(turns[last].turn_id), str(known)),
            ("how that turn ended", f"`{turns[last].error}`", f"`{turns[known - 1].error}`"),
        ],
    )


def recorded_cache() -> tuple[KVCache, list[int]]:
    """Fill one cache with the recorded conversations; gives it and the blocks of the latest prompt.

    A prompt's first blocks are the ones that its server had cached, by its own count; the others are new.
    """
    cache, tracker, latest = KVCache(KVPolicy("lru", capacity=4096)), BlockTracker("idle"), dict[str, list[int]]()
    fresh = iter(range(1, 1 << 20))
    path: list[int] = []
    for entry in recorded():
        if entry.error == "none":
            name = str(entry.session_id)
            path = latest.get(name, [])[: int(entry.cached_tokens) // BLOCK]
            path = path + [next(fresh) for _ in range(int(entry.input_tokens) // BLOCK - len(path))]
            latest[name] = path
            cache.policy.request(path)
            tracker.touch(name, path)
    cache.tiers.update({block: tracker.age(block) for block in sorted(cache.policy)})
    return cache, path


def relieved(
    action: str, params: dict[str, Any], rows: Callable[[KVCache, list[int]], dict[str, str]], **lent: Any
) -> str:
    """Carry out one action on that cache."""
    cache, path = recorded_cache()
    for name, value in lent.items():
        setattr(cache, name, value)
    before = rows(cache, path)
    done: Done = carry_out(Action(action, params), cache)
    assert done.is_done
    after = rows(cache, path)
    return table(("the cache", "before", "after"), [(name, before[name], after[name]) for name in before])


def evict_kv() -> str:
    """Count the blocks, and those of the conversation that goes on."""
    return relieved(
        "evict_kv",
        {},
        lambda cache, path: {
            "blocks": str(len(cache.policy)),
            "of the conversation that goes on": str(sum(block in cache.policy for block in path)),
        },
    )


def tier_kv() -> str:
    """Count the blocks in fast memory and those moved."""
    moved: list[int] = []

    def move(block: int, tier: int) -> bool:
        moved.append(block)
        return True

    return relieved(
        "tier_kv",
        {},
        lambda cache, path: {
            "blocks in fast memory": str(len(cache.policy) - len(moved)),
            "blocks in slower memory": str(len(moved)),
            "of the conversation that goes on, in fast memory": str(len(set(path) - set(moved))),
        },
        move=move,
    )


def quantize_kv() -> str:
    """Say what the same blocks take in fewer bits."""
    full = KVCache(KVPolicy("lru", capacity=1)).precision.bits
    return relieved(
        "quantize_kv",
        {},
        lambda cache, path: {
            "bits a value": str(cache.precision.bits),
            "memory of the blocks": f"{cache.precision.bits / full:.0%}",
        },
        usage=0.95,
    )


def compensate() -> str:
    """Follow a host through the first recorded context shift, up to the position of its next token."""
    asked = next(s.server for s in SCENARIOS if s.name == "shift")
    lines = map(json.loads, Path(shipped_recording()).read_text(encoding="utf-8").splitlines())
    dropped = next(line["shift_discarded_tokens"] for line in lines if line.get("shift_count"))
    held = asked.n_ctx - 1  # llama.cpp shifts when no token more would fit
    kept = kept_after_shift(asked.n_keep, held - asked.n_keep, dropped)
    done = compensate_positions(kept, n_sink=asked.n_keep, max_position=asked.n_ctx)
    return table(
        ("the shifted cache", "before", "after"),
        [
            ("tokens in it", str(held), str(len(kept))),
            ("position of the next token", str(held), str(done.next_position)),
            ("stored keys behind the first are turned by", "0", str(int(done.rotation[-1]))),
        ],
    )


def repair() -> str:
    """Flip one bit of the mask of every recorded prompt, and repair it."""
    rng, counts = np.random.default_rng(7), dict.fromkeys(("masks", "wrong", "parity", "odd", "hidden", "left"), 0)
    for turn in recorded():
        if turn.error != "none":
            continue
        cached, rows = int(turn.cached_tokens), int(turn.input_tokens) - int(turn.cached_tokens)
        sees = unpack(mask_rows(cached=cached, rows=rows), cached + rows)
        mask = np.where(sees, 0.0, -np.inf).astype(np.float16)
        parity, damaged = row_parity(mask), mask.copy()
        cell = rng.integers(rows), rng.integers(cached + rows)
        damaged.view(np.uint16)[cell] ^= np.uint16(1 << rng.integers(16))
        found = repair_mask(damaged, cached=cached, parity=parity)
        counts["masks"] += 1
        counts["parity"] += found.parity_rows
        counts["odd"] += found.odd_cells
        counts["hidden"] += found.wrong_cells
        counts["wrong"] += int((damaged.view(np.uint16) != mask.view(np.uint16)).any())
        counts["left"] += int((found.mask.view(np.uint16) != mask.view(np.uint16)).any())
    return table(
        ("masks of the recorded prompts", "before", "after"),
        [
            (
                "not as they were made",
                f"{counts['wrong']} of {counts['masks']}",
                f"{counts['left']} of {counts['masks']}",
            ),
            ("seen by the parity of rows", "", str(counts["parity"])),
            ("seen by cells that hold no legal value", "", str(counts["odd"])),
            ("seen by cells that show or hide a key wrongly", "", str(counts["hidden"])),
        ],
    )


INSIDE: dict[str, Callable[[], str]] = {
    "reset_context": lambda: rewritten("reset_context", {"keep_turns": 2}),
    "insert_summary": lambda: rewritten("insert_summary", {"budget": 128}),
    "rollback_snapshot": rollback_snapshot,
    "evict_kv": evict_kv,
    "tier_kv": tier_kv,
    "quantize_kv": quantize_kv,
    "compensate_positions": compensate,
    "repair_mask": repair,
}
