"""Every key of a pack file and of a case file: what it holds, and one sentence about it.

The checker reads these tables when a pack is loaded; ``schema`` holds the pydantic twin from
which the published JSON Schema is generated (pydantic is not imported to load a pack), and a
test shows that both accept the same keys.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from stabilitykit.rules.pack import SEVERITIES
from stabilitykit.signals import SCOPES

__all__ = [
    "ACTION",
    "ACTION_PARAM",
    "CASE",
    "CASE_FILE",
    "COUNT",
    "DEFAULTS",
    "DETECTOR",
    "EXPECT",
    "KINDS",
    "MACHINE",
    "OBSERVE_FIELDS",
    "ON_MISSING",
    "PACK",
    "PARAM",
    "RULE",
    "SIGNAL",
    "STATE",
    "STEP",
    "TRANSITION",
    "TURN_FIELDS",
    "VERSION",
    "Key",
    "Table",
]

VERSION = 1
"""The language version this reader has."""
ON_MISSING = ("hold", "skip", "fire")

KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "text"),
    "condition": ((str,), "a condition in quotes or plain text"),
    "id": ((str,), "an id"),
    "word": ((str,), "a word"),
    "flag": ((bool,), "true or false"),
    "turns": ((str, int, float), "a number of turns, for example `3 turns`"),
    "literal": ((str, int, float, bool), "a literal, for example `80 ms`, 0.2 or true"),
    "integer": ((int,), "a whole number"),
    "ids": ((list,), "a list of ids"),
    "id_or_ids": ((str, list), "an id or a list of ids"),
    "texts": ((list,), "a list of texts"),
    "list": ((list,), "a list"),
    "map": ((dict,), "a mapping"),
    "number": ((int, float), "a number"),
    "any": ((str, int, float, bool, list, dict), "a value"),
}
"""Kind of a value: the types that YAML may give for it, and how to say so."""


@attrs.frozen
class Key:
    """What stands under one key.

    Parameters
    ----------
    kind
        A key of ``KINDS``.
    doc
        One sentence for editors and the reference.
    required
        True when it has no default.
    values
        The closed list of words, when it is one.
    """

    kind: str
    doc: str
    required: bool = False
    values: tuple[str, ...] = ()


Table = Mapping[str, Key]

_OVERRIDE = Key("flag", "this item replaces fields of the inherited item of the same id")
_ENABLED = Key("flag", "false removes the item")

PACK: Table = {
    "stabilitykit": Key("integer", "version of the rule language: 1", required=True),
    "pack": Key("id", "name of the pack", required=True),
    "desc": Key("text", "one sentence about the pack"),
    "extends": Key("texts", "packs to build on: a shipped pack's name, or a path that contains `/`"),
    "params": Key("map", "numbers, flags and words that the host may set at load"),
    "signals": Key("map", "further signals, passed in Turn(extra={...})"),
    "detectors": Key("map", "what is measured: detectors with their settings, by name"),
    "rules": Key("list", "what it means: conditions over signals and detectors"),
    "machine": Key("map", "where the conversation stands: states and transitions"),
    "actions": Key("map", "further actions that the host carries out"),
    "defaults": Key("map", "defaults of every rule of the loaded set"),
}
DEFAULTS: Table = {
    "on_missing": Key("word", "what an unknown verdict means", values=ON_MISSING),
    "hold_limit": Key("turns", "blind turns in a row after which `hold` acts as `skip` (20 turns)"),
}
PARAM: Table = {
    "default": Key("literal", "the value with its unit: `80 ms`, 0.2, true, or a word", required=True),
    "min": Key("literal", "least value allowed"),
    "max": Key("literal", "greatest value allowed"),
    "doc": Key("text", "one sentence, with the source of the number"),
    "override": _OVERRIDE,
    "enabled": _ENABLED,
}
SIGNAL: Table = {
    "unit": Key("word", "its unit; `ratio`, `count`, `bool`; left out for an enum"),
    "scope": Key("word", "whose value it is (session)", values=SCOPES),
    "min": Key("literal", "least valid value"),
    "max": Key("literal", "greatest valid value"),
    "values": Key("texts", "the words of an enum"),
    "doc": Key("text", "one sentence"),
    "override": _OVERRIDE,
    "enabled": _ENABLED,
}
DETECTOR: Table = {
    "type": Key("word", "type of the detector", required=True),
    "scope": Key("word", "a wider scope than that of its inputs", values=SCOPES),
    "doc": Key("text", "one sentence"),
    "override": _OVERRIDE,
    "enabled": _ENABLED,
}
"""The keys of every detector; its inputs and settings come from its ``DetectorSpec``."""
RULE: Table = {
    "rule": Key("id", "id of the rule, unique in the loaded set", required=True),
    "desc": Key("text", "one sentence"),
    "when": Key("condition", "the condition", required=True),
    "severity": Key("word", "how bad a match is (warning)", values=SEVERITIES),
    "for": Key("turns", "consecutive turns it must hold before it matches (1)"),
    "count": Key("map", "instead of `for`: so many of the last turns"),
    "keep_for": Key("turns", "stays matched this long after the condition clears (0)"),
    "cooldown": Key("turns", "fires at most once in so many turns"),
    "on_missing": Key("word", "what an unknown verdict means (hold)", values=ON_MISSING),
    "hold_limit": Key("turns", "blind turns in a row after which `hold` acts as `skip` (20 turns)"),
    "do": Key("list", "actions when it fires"),
    "reason": Key("text", "template over what `when` reads"),
    "tags": Key("ids", "labels; the first says maturity: stable, incubating or sandbox"),
    "override": _OVERRIDE,
    "enabled": _ENABLED,
}
COUNT: Table = {
    "at_least": Key("literal", "how many of them", required=True),
    "in": Key("turns", "the last so many turns, at most 64", required=True),
}
MACHINE: Table = {
    "initial": Key("id", "state of a new session, replica or device", required=True),
    "states": Key("list", "states from least to most severe", required=True),
    "transitions": Key("list", "the first that holds is taken", required=True),
    "override": _OVERRIDE,
}
STATE: Table = {
    "state": Key("id", "name of the state", required=True),
    "do": Key("list", "actions on entry"),
    "while": Key("list", "actions on every turn that ends in the state"),
    "was": Key("id", "its name before a reload"),
}
TRANSITION: Table = {
    "from": Key("id_or_ids", "the state or states it leaves", required=True),
    "to": Key("id", "the state it enters", required=True),
    "when": Key("condition", "guard: `any critical`, `none for 3 turns`, `rule:id` ..."),
    "after": Key("turns", "turns since the state was entered"),
}
ACTION: Table = {
    "doc": Key("text", "one sentence"),
    "params": Key("map", "its parameters, written like the params of a pack"),
    "group": Key("id", "conflict group: only its best rank stays"),
    "rank": Key("integer", "rank in the group, 1 is best"),
    "many": Key("flag", "several with different parameters may stand beside each other"),
    "drops": Key("texts", "actions that this one removes when it stays"),
    "override": _OVERRIDE,
    "enabled": _ENABLED,
}
ACTION_PARAM: Table = {
    "default": Key("literal", "the value with its unit: `5 s`, 0.2, true, or a word", required=True),
    "min": Key("literal", "least value allowed"),
    "max": Key("literal", "greatest value allowed"),
    "values": Key("texts", "the words allowed"),
    "doc": Key("text", "one sentence"),
}

CASE_FILE: Table = {"cases": Key("list", "the cases", required=True)}
CASE: Table = {
    "name": Key("text", "one sentence", required=True),
    "turns": Key("list", "accepted turns of one session, and samples", required=True),
    "expect": Key("any", "what must be true after a turn, or a list of such", required=True),
}
TURN_FIELDS: Table = {
    "model": Key("text", "model that answered"),
    "replica": Key("text", "replica that served it"),
    "device": Key("text", "device that served it"),
    "timestamp_s": Key("number", "when it ended, in seconds"),
    "replica_sample_s": Key("number", "when its replica signals were measured"),
    "device_sample_s": Key("number", "when its device signals were measured"),
}
STEP: Table = {
    **TURN_FIELDS,
    "repeat": Key("integer", "so many turns like this one (1)"),
    "gap": Key("integer", "turn ids to skip before it (0)"),
    "applied": Key("texts", "actions of the last decision that the host carried out"),
    "observe": Key("map", "instead of a turn: a sample of a replica or device"),
}
OBSERVE_FIELDS: Table = {key: TURN_FIELDS[key] for key in ("replica", "device", "timestamp_s")}
EXPECT: Table = {
    "turn": Key("any", "`last` or the number of an accepted turn (last)"),
    "state": Key("id", "the session's state"),
    "rules": Key("ids", "exactly the rules that match"),
    "fired": Key("ids", "exactly the rules that fire"),
    "actions": Key("texts", "exactly the actions that go out"),
    "faults": Key("list", "exactly the faults: `invalid`, or `invalid: itl_ms`"),
    "scopes": Key("map", "states of the replica or device"),
}
