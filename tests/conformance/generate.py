"""Write the case files whose expectations are tables: Kleene's logic, and the boundaries of windows.

The tables below were written from section 4 of the rule language by hand; nothing here evaluates
a rule. Run ``python -m tests.conformance.generate`` after changing a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["FILES", "cases_of_kleene", "cases_of_windows", "rendered"]

FOLDER = Path(__file__).resolve().parent / "cases"
MACHINE = "machine: {initial: healthy, states: [{state: healthy}], transitions: []}"
X = {"T": 90, "F": 70, "U": None}
Y = {"T": 20, "F": 1, "U": None}

# rows: left side T U F; columns: right side T U F
AND = {"T": "TUF", "U": "UUF", "F": "FFF"}
OR = {"T": "TTT", "U": "TUU", "F": "TUF"}
NOT = {"T": "F", "U": "U", "F": "T"}

# K: x is known (and the comparison true), -: x is missing; verdict of the window on each turn
WINDOWS: dict[int, list[tuple[str, str]]] = {
    2: [("K", "T"), ("KK", "TT"), ("-K", "UT"), ("K-", "TU"), ("K--K", "TUUT")],
    3: [
        ("K", "U"),
        ("KK", "UT"),
        ("-KK", "UUT"),
        ("K-K", "UUT"),
        ("K--K", "UUUU"),
        ("KK-K", "UTUT"),
        ("KK--KK", "UTUUUT"),
    ],
    4: [("KK", "UT"), ("K-K", "UUT"), ("K--K", "UUUT"), ("K---K", "UUUUU"), ("K---KK", "UUUUUT")],
    5: [("KKK", "UUT"), ("K-K-K", "UUUUT"), ("KK---K", "UUUUUU"), ("KKK--K", "UUTUUT"), ("KKK---K", "UUTUUUU")],
    6: [("KKK", "UUT"), ("KK---K", "UUUUUT"), ("KK----K", "UUUUUUU")],
    7: [("KKKK", "UUUT"), ("KKK---K", "UUUUUUT"), ("KKK----K", "UUUUUUUU")],
}
# the same for count(c, n turns) >= 1, where turns before the first count as F
COUNTS: dict[int, list[tuple[str, str]]] = {
    2: [("K", "T"), ("-K", "UT"), ("--K", "UUT"), ("K-", "TU")],
    3: [("K", "T"), ("-K", "UT"), ("--K", "UUU"), ("--KK", "UUUT"), ("K-K", "TUT")],
    4: [("--K", "UUT"), ("---K", "UUUU"), ("---KK", "UUUUT"), ("-K-K", "UTUT")],
    5: [("--K", "UUT"), ("---K", "UUUU"), ("---KK", "UUUUU"), ("---KKK", "UUUUUT")],
}


def case(name: str, sentence: str, condition: str, columns: dict[str, list[Any]], verdicts: str) -> dict[str, Any]:
    """Make a case that shows a condition's verdicts through a rule that skips and one that fires."""
    return {
        "name": name,
        "section": "4",
        "sentence": sentence,
        "pack": [
            "stabilitykit: 1",
            "pack: case",
            "rules:",
            f'  - {{rule: is-true, when: "{condition}", on_missing: skip}}',
            f'  - {{rule: not-false, when: "{condition}", on_missing: fire}}',
            MACHINE,
        ],
        "columns": columns,
        "marks": {"is-true": marks(verdicts, "T"), "not-false": marks(verdicts, "TU")},
    }


def marks(verdicts: str, matching: str) -> str:
    """Write the marks of a rule that matches on some verdicts and fires on the first of each run."""
    words = []
    for before, now in zip(f"F{verdicts}", verdicts, strict=False):
        words.append("." if now not in matching else "M" if before in matching else "M*")
    return " ".join(words)


def cases_of_kleene() -> Iterator[dict[str, Any]]:
    """Give a case for each cell of the tables of and, or, not."""
    sentence = "`and` = least, `or` = greatest, `not` swaps, in the order F < U < T (Kleene)"
    for word, table in (("and", AND), ("or", OR)):
        for left, row in table.items():
            for right, verdict in zip("TUF", row, strict=True):
                columns = {"itl_ms": [X[left]], "ttft_ms": [Y[right]]}
                condition = f"itl_ms > 80 ms {word} ttft_ms > 10 ms"
                yield case(f"{left} {word} {right} is {verdict}", sentence, condition, columns, verdict)
    for value, verdict in NOT.items():
        yield case(f"not {value} is {verdict}", sentence, "not itl_ms > 80 ms", {"itl_ms": [X[value]]}, verdict)


def cases_of_windows() -> Iterator[dict[str, Any]]:
    """Give a case for each pattern of known turns and each function over a window."""
    sentence = "They are U when x is unknown this turn, or when fewer than ceil(n/2) of the n turns have a known value"
    for function in ("mean", "min", "max"):
        for n, rows in WINDOWS.items():
            for pattern, verdicts in rows:
                columns = {"itl_ms": [X["T"] if known == "K" else None for known in pattern]}
                condition = f"{function}(itl_ms, {n} turns) > 80 ms"
                yield case(f"{function} over {n} turns of {pattern}", sentence, condition, columns, verdicts)
    sentence = (
        "U when c is U this turn, or more than floor(n/2) of the n turns had c = U; turns before the first count as F"
    )
    for n, rows in COUNTS.items():
        for pattern, verdicts in rows:
            columns = {"itl_ms": [X["T"] if known == "K" else None for known in pattern]}
            condition = f"count(itl_ms > 80 ms, {n} turns) >= 1"
            yield case(f"count() over {n} turns of {pattern}", sentence, condition, columns, verdicts)


def rendered(cases: Iterator[dict[str, Any]]) -> str:
    """Write cases as JSON, one key a line."""
    texts = []
    for one in cases:
        lines = ["  " + json.dumps(key) + ": " + json.dumps(value) for key, value in one.items() if key != "pack"]
        pack = ",\n".join("    " + json.dumps(line) for line in one["pack"])
        lines.insert(3, f'  "pack": [\n{pack}]')
        texts.append(" {\n" + ",\n".join(lines) + "\n }")
    return '{"format": 1, "cases": [\n' + ",\n".join(texts) + "\n]}\n"


FILES = {"04_kleene.json": cases_of_kleene, "04_windows.json": cases_of_windows}

if __name__ == "__main__":
    for name, cases in FILES.items():
        (FOLDER / name).write_text(rendered(cases()), encoding="utf-8")
