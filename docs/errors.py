"""Every error code of the rule language, with a small text that raises it and the message it gives."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from stabilitykit.engine import Engine
from stabilitykit.errors import PackError, Problem, ReloadRefused

HERE = Path(__file__).resolve().parent / "reference"
CODE = re.compile(r"^\| (SK\d{3}) \| (.*?) \|$", re.MULTILINE)
GROUPS = {
    "1": "The file is read",
    "2": "Keys and values",
    "3": "Names",
    "4": "Conditions",
    "5": "The machine",
    "6": "Limits",
}
SHOWN = 3  # lines of a repeated line that the page prints


def meanings() -> dict[str, str]:
    """Give the sentence of each code, from the table on the page of the rule language."""
    return dict(CODE.findall((HERE / "rule-language.md").read_text(encoding="utf-8")))


def examples() -> list[Mapping[str, Any]]:
    """Give the examples, as the file says them."""
    found: list[Mapping[str, Any]] = yaml.safe_load((HERE / "error_examples.yaml").read_text(encoding="utf-8"))
    return found


def text_of(example: Mapping[str, Any]) -> str:
    """Give the whole text of an example."""
    repeat = example.get("repeat", {"line": "", "times": 0})
    lines = (repeat["line"].format(n=n, m=n + 1) + "\n" for n in range(repeat["times"]))
    return str(example["text"]) + "".join(lines)


def problems_of(example: Mapping[str, Any], folder: Path) -> list[Problem]:
    """Load an example (or reload it over the pack before it) and give what is wrong with it."""
    path = folder / "pack.yaml"
    path.write_text(example.get("before", text_of(example)), encoding="utf-8")
    try:
        engine = Engine.load(str(path), compiled=False)
        path.write_text(text_of(example), encoding="utf-8")
        engine.reload(str(path))
    except PackError as error:
        return list(error.problems)
    except ReloadRefused as error:
        code, _, message = str(error).partition(" ")
        return [Problem("pack.yaml", 0, 0, code.rstrip(":"), message)]
    return []


def page() -> str:
    """Render the page of error codes."""
    said = meanings()
    return "# Error codes\n\n" + INTRODUCTION + "".join(_sections(said))


INTRODUCTION = (
    "Each code with the smallest text that raises it, and what the loader then says. How to read them is in "
    "[the rule language](../rule-language.md).\n\n"
)


def _sections(said: Mapping[str, str]) -> Iterator[str]:
    group = ""
    for example in examples():
        code = example["code"]
        if code[2] != group:
            group = code[2]
            yield f"## {GROUPS[group]}\n\n"
        yield f"### {code}\n\n{said[code][:1].upper()}{said[code][1:]}.\n\n"
        if "before" in example:
            yield f"The pack that is running:\n\n```yaml\n{example['before']}```\n\nthe pack to take its place:\n\n"
        yield f"```yaml\n{_shown(example)}```\n\n```text\n{_message(example)}\n```\n\n"


def _shown(example: Mapping[str, Any]) -> str:
    if "show" in example:
        return str(example["show"])
    lines = text_of(example).splitlines(keepends=True)
    head = example["text"].count("\n") + SHOWN
    if len(lines) <= head + 1:
        return "".join(lines)
    return "".join(lines[:head]) + f"  # ... {len(lines) - head - 1:,} more like these ...\n" + lines[-1]


def _message(example: Mapping[str, Any]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        problem = problems_of(example, Path(folder))[0]
    if not problem.line:
        return f"{problem.code} {problem.message}"
    text = str(problem).replace(problem.file, "pack.yaml", 1)
    return re.sub("[\u202a-\u202e]", lambda m: f"<U+{ord(m[0]):04X}>", text)
