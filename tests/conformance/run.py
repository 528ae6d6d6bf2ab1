"""Run language-neutral conformance cases on an engine; the format is in ``README.md``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import attrs

from stabilitykit.decision import Receipt
from stabilitykit.errors import StabilityKitError
from stabilitykit.rules.pack import Pack
from stabilitykit.turn import MISSING, Turn

__all__ = ["Adapter", "load_pack_of", "read_cases", "run_case"]

Case = Mapping[str, Any]
VERBS = ("turn", "peek", "observe", "fork", "forget")
FIELDS = {field.name for field in attrs.fields(Turn)}
SPECIAL = {"missing": MISSING, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}
CASE_KEYS = {"name", "about", "section", "sentence", "pack", "files", "options"} | {
    "entries",
    "columns",
    "marks",
    "states",
    "errors",
}
ENTRY_KEYS = {*VERBS, "repeat", "expect"}
EXPECT_KEYS = {"state", "previous", "matched", "fired", "actions", "suppressed", "winners", "faults", "scopes", "error"}


class Adapter(Protocol):
    """How an engine takes part."""

    def start(self, pack: Pack, options: Mapping[str, Any]) -> None:
        """Begin a case with fresh memory."""

    def step(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Take one decoded entry; answer as the README says."""


def read_cases(path: Path) -> list[dict[str, Any]]:
    """Read the cases of a file; a misspelt key is an error, not a check that never runs."""
    document = json.loads(path.read_text(encoding="utf-8"))
    if document["format"] != 1:
        raise ValueError(f"{path.name}: format {document['format']}")
    for case in document["cases"]:
        allow(case, CASE_KEYS, case["name"])
        for entry in case.get("entries", []):
            allow(entry, ENTRY_KEYS, case["name"])
            allow(entry.get("expect", {}), EXPECT_KEYS, case["name"])
            if len(set(entry) & set(VERBS)) != 1:
                raise ValueError(f"{case['name']}: an entry has exactly one verb")
    return list(document["cases"])


def allow(found: Mapping[str, Any], known: set[str], name: str) -> None:
    """Refuse unknown keys."""
    if not set(found) <= known:
        raise ValueError(f"{name}: unknown {sorted(set(found) - known)}")


def load_pack_of(case: Case, folder: Path, write_to: Path) -> Pack:
    """Load the pack of a case; lines of YAML are written to a file first.

    Parameters
    ----------
    case
        The case.
    folder
        Where the JSON file lies.
    write_to
        A folder for packs that are given as text.
    """
    from stabilitykit.detectors import DETECTORS
    from stabilitykit.rules.load import load_pack

    for name, text in case.get("files", {}).items():
        (write_to / name).parent.mkdir(parents=True, exist_ok=True)
        (write_to / name).write_bytes(bytes_of(text))
    source = case.get("pack", str(write_to / "pack.yaml"))
    if isinstance(source, list):
        path = write_to / "pack.yaml"
        path.write_bytes(bytes_of(source))
        source = str(path)
    elif source.endswith(".yaml"):
        source = str(folder / source)
    return load_pack(source, params=case.get("options", {}).get("params"), detectors=DETECTORS)


def bytes_of(text: Any) -> bytes:
    """Give a file's bytes: of lines, of lines that stand for many, or in hexadecimal."""
    if isinstance(text, dict):
        return bytes.fromhex(text["hex"])
    lines: list[str] = []
    for line in text:
        if isinstance(line, str):
            lines.append(line)
        else:
            lines += [line["line"].replace("{n}", str(n)) for n in range(1, line["repeat"] + 1)]
    return ("\n".join(lines) + "\n").encode()


def run_case(case: Case, pack: Pack, adapter: Adapter) -> list[str]:
    """Play a case; give one line for each difference."""
    adapter.start(pack, case.get("options", {}))
    differences = []
    for number, entry in enumerate(entries_of(case), 1):
        for _ in range(entry.get("repeat", 1) - 1):
            adapter.step(decoded(entry))
        expected = entry.get("expect", {})
        got = answer(adapter, entry, "error" in expected)
        differences += [f"entry {number}: {line}" for line in compare(expected, got)]
    return differences


def answer(adapter: Adapter, entry: Case, may_raise: bool) -> dict[str, Any]:
    """Take one entry; an expected misuse becomes ``{"error": name}``."""
    try:
        return adapter.step(decoded(entry))
    except StabilityKitError as error:
        if not may_raise:
            raise
        return {"error": type(error).__name__}


# what goes in


def entries_of(case: Case) -> Iterator[Mapping[str, Any]]:
    """Give the entries of a case, the shorthand written out."""
    if "columns" not in case:
        yield from case.get("entries", ())
        return
    marks = {rule: text.split() for rule, text in case.get("marks", {}).items()}
    states = case.get("states", "").split()
    for turn, values in enumerate(zip(*case["columns"].values(), strict=True)):
        expect: dict[str, Any] = {"marks": {rule: row[turn] for rule, row in marks.items()}}
        if states:
            expect["state"] = states[turn]
        yield {"turn": dict(zip(case["columns"], values, strict=True)), "expect": expect}


def decoded(entry: Case) -> dict[str, Any]:
    """Give an entry as adapters take it."""
    (verb,) = set(entry) & set(VERBS)
    fields = {key: value_of(value) for key, value in entry[verb].items()}
    if verb in ("turn", "peek"):
        return {verb: turn_of(fields)}
    return {verb: {k: v for k, v in fields.items() if k not in ("replica", "device") or v is not MISSING}}


def value_of(value: Any) -> Any:
    """Decode what JSON cannot say."""
    if value is None:
        return MISSING
    if isinstance(value, list):
        return [value_of(v) for v in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"is"}:
        return object() if value["is"] == "object" else SPECIAL[value["is"]]
    return {key: value_of(v) for key, v in value.items()}


def turn_of(fields: Mapping[str, Any]) -> Turn:
    """Build a Turn; session and receipt have short forms."""
    given = {"session_id": "s", **{k: v for k, v in fields.items() if v is not MISSING}}
    if isinstance(given.get("applied"), dict):
        receipt = given["applied"]
        session_id = receipt.get("session_id", given["session_id"])
        tenant = receipt.get("tenant", given.get("tenant", ""))
        given["applied"] = Receipt(session_id, receipt["turn_id"], tuple(receipt["done"]), tenant=tenant)
    declared = {name: given.pop(name) for name in sorted(given.keys() - FIELDS)}
    if declared:
        given["extra"] = {**given.get("extra", {}), **declared}
    return Turn(**given)


# what comes out


def compare(expected: Mapping[str, Any], got: Mapping[str, Any]) -> Iterator[str]:
    """Give a line for each key that differs."""
    for key, wanted in expected.items():
        if key == "marks":
            found: Any = {rule: mark(rule, got) for rule in wanted}
        elif key == "actions":
            found, wanted = list(shown(got["actions"], wanted)), [list(pair(w)) for w in wanted]
        elif key in ("matched", "fired", "suppressed"):
            found, wanted = sorted(set(got[key])), sorted(wanted)
        elif key == "faults":
            found, wanted = sorted({f"{k}:{s}" if s else k for k, s in got["faults"]}), sorted(wanted)
        else:
            found = got.get(key)
        if found != wanted:
            yield f"{key}: expected {wanted}, got {found}"


def mark(rule: str, got: Mapping[str, Any]) -> str:
    """Write what a rule did: ``.``, ``M`` or ``M*``."""
    return "." if rule not in got["matched"] else "M*" if rule in got["fired"] else "M"


def pair(wanted: Any) -> tuple[str, dict[str, Any]]:
    """Give an expected action as (name, parameters to compare)."""
    return (wanted, {}) if isinstance(wanted, str) else (wanted[0], wanted[1])


def shown(actions: list[tuple[str, Mapping[str, Any]]], wanted: list[Any]) -> Iterator[list[Any]]:
    """Give the actions that came out, with the parameters that are compared."""
    for place, (name, params) in enumerate(actions):
        keys = pair(wanted[place])[1] if place < len(wanted) else {}
        yield [name, {key: params.get(key) for key in keys}]
