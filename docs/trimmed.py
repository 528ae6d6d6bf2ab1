"""Writes the before and after of docs/how-to/trim-a-conversation.md, from the packaged prompts of a real recording.

``python -m docs.trimmed``; a test keeps it fresh.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.record.scenarios import load_prompts
from docs.tables import table
from stabilitykit.mitigations.context import trim

PAGE = Path(__file__).parent / "how-to" / "trim-a-conversation.md"
FIRST, LAST = "<!-- trimmed -->", "<!-- end of trimmed -->"
BUDGET = 360


def block() -> str:
    """Trim the recorded conversation, and say which user turns stayed."""
    prompts = load_prompts()["overflow"]
    texts = list(prompts["user"])
    asked = f"Earlier I asked: {texts[1]} Say it again."
    chat = [{"role": "system", "content": prompts["system"]}]
    chat += [{"role": "user", "content": text} for text in [*texts, asked]]
    done = trim(chat, BUDGET)
    rows = [
        ("tokens", str(done.tokens_before), str(done.tokens_after)),
        ("messages", str(len(chat)), str(len(done.messages))),
        ("the question", chat[-1]["content"], "kept" if chat[-1] in done.messages else "dropped"),
        ("the turn it is about", texts[1], "kept" if chat[2] in done.messages else "dropped"),
    ]
    return "\n".join([FIRST, "", table(("what", "before", f"after, at {BUDGET} tokens"), rows).rstrip(), "", LAST])


def written(text: str) -> str:
    """Put the block between its marks."""
    before, _, rest = text.partition(FIRST)
    return before + block() + rest.partition(LAST)[2]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
