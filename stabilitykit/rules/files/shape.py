"""The shape of one file: keys, types of values, ids; items in the order of the file.

What a value means (units, names, ranges) is checked after ``extends`` and ``override`` are
applied, once for each item that is left.
"""

from __future__ import annotations

import re
from typing import Any

import attrs

from stabilitykit.rules.conditions.lexer import ID, NAME, RESERVED
from stabilitykit.rules.files import keys
from stabilitykit.rules.files.keys import KINDS, Key, Table
from stabilitykit.rules.files.locate import BAD, Findings, Place
from stabilitykit.rules.files.scalars import show

__all__ = ["File", "Item", "check_file", "check_map", "check_required"]

MAX_ID = 128
_ITEM_TABLES = {
    "params": keys.PARAM,
    "signals": keys.SIGNAL,
    "detectors": keys.DETECTOR,
    "actions": keys.ACTION,
}
_CONDITION_CODES = {bool: "SK422", int: "SK402", float: "SK402"}


@attrs.define
class Item:
    """One item of a section: a rule, a param, a detector ... or the machine.

    Parameters
    ----------
    fields
        Checked for shape; a value already reported is ``BAD``, a reset (``~``) is ``None``.
    place
        Where the item stands.
    origins
        Place of the item from which an inherited field came, for fields not from here.
    broken
        True when it is no mapping at all: reported, and not looked at again.
    """

    section: str
    id: str
    fields: dict[str, Any]
    place: Place
    origins: dict[str, Place] = attrs.field(factory=dict)
    broken: bool = False

    def get(self, field: str, default: Any = None) -> Any:
        """Give a field, or the default when it is absent or reset."""
        value = self.fields.get(field)
        return default if value is None else value

    def at(self, field: str) -> Place:
        """Give the place of a field's value."""
        return self.origins.get(field, self.place).child(field)


@attrs.define
class File:
    """One pack file, checked for shape; ``extends`` is ``None`` when it is no list of texts."""

    place: Place
    name: str
    desc: str
    extends: list[str] | None
    items: list[Item]
    defaults: dict[str, Any]


def check_map(findings: Findings, place: Place, value: Any, table: Table, what: str) -> dict[str, Any]:
    """Check keys and types of a mapping.

    Parameters
    ----------
    what
        How to call it in a message (``"a rule"``).

    Returns
    -------
    dict
        Its known keys; a value of the wrong type is ``BAD``.
    """
    if type(value) is not dict:
        findings.add(place, "SK203", f"{what} must be a mapping, not {_type_name(value)}")
        return {}
    checked: dict[str, Any] = {}
    for key, inner in value.items():
        spec = table.get(key)
        if spec is None:
            if findings.is_full(place):
                break
            unknown_key(findings, place.child(key), str(key), table, what)
        elif inner is None:
            checked[key] = None
        else:
            checked[key] = _check_value(findings, place, key, inner, spec)
    return checked


def unknown_key(findings: Findings, place: Place, key: str, known: Any, what: str) -> None:
    """Report SK201 at a key, with the nearest key there is."""
    findings.add(place, "SK201", f"{what} has no key {show(key)}", near=(key, known), key=True)


def check_required(findings: Findings, place: Place, fields: dict[str, Any], table: Table, what: str) -> None:
    """Report every required key that is missing."""
    for key, spec in table.items():
        if spec.required and fields.get(key) is None:
            findings.add(place, "SK202", f"{what} needs `{key}`: {spec.doc}")


def _check_value(findings: Findings, place: Place, key: str, value: Any, spec: Key) -> Any:
    types, phrase = KINDS[spec.kind]
    kind = type(value)
    if kind not in types:
        code = _CONDITION_CODES.get(kind, "SK203") if spec.kind == "condition" else "SK203"
        listed = f"write `[{value}]`" if kind is str and spec.kind in ("ids", "texts") and len(value) <= 64 else ""
        findings.add(place.child(key), code, f"`{key}` must be {phrase}, not {_type_name(value)}", hint=listed)
        return BAD
    if spec.values and value not in spec.values:
        hint = f"one of {', '.join(spec.values)}"
        findings.add(
            place.child(key), "SK416", f"`{key}` cannot be {show(value)}", hint=hint, near=(value, spec.values)
        )
        return BAD
    if spec.kind == "id" or (spec.kind == "id_or_ids" and kind is str):
        return value if _check_id(findings, place, key, value) else BAD
    if spec.kind in ("ids", "texts", "id_or_ids"):
        return _check_elements(findings, place.child(key), value, ids=spec.kind != "texts")
    return value


def _check_elements(findings: Findings, place: Place, values: list[Any], *, ids: bool) -> Any:
    sound = True
    for index, value in enumerate(values):
        if type(value) is not str:
            findings.add(place.child(index), "SK203", f"must be text, not {_type_name(value)}")
            sound = False
        elif ids:
            sound &= _check_id(findings, place, index, value)
    return values if sound else BAD


def _check_id(findings: Findings, place: Place, step: str | int, value: str) -> bool:
    if ID.fullmatch(value) and len(value) <= MAX_ID:
        return True
    suggestion = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")[:MAX_ID]
    hint = f"`{suggestion}`" if ID.fullmatch(suggestion) else ""
    findings.add(place.child(step), "SK205", "an id is lower-case words joined by `-`", hint=hint)
    return False


def _check_name(findings: Findings, place: Place, value: str) -> bool:
    if value in RESERVED:
        findings.add(place, "SK205", f"`{value}` is a word of the language", key=True)
        return False
    if NAME.fullmatch(value) and len(value) <= MAX_ID:
        return True
    suggestion = re.sub(r"[^a-z0-9]+", "_", value.lower()).strip("_")[:MAX_ID]
    hint = f"`{suggestion}`" if NAME.fullmatch(suggestion) and suggestion not in RESERVED else ""
    findings.add(place, "SK205", "a name is lower-case letters, digits and `_`", hint=hint, key=True)
    return False


def check_file(findings: Findings, place: Place) -> File | None:
    """Check the shape of a whole pack file.

    Returns
    -------
    File or None
        ``None`` when it is no mapping, or of a language version this reader does not have.
    """
    root = place.doc.root
    if type(root) is dict and not _check_version(findings, place, root):
        return None
    top = check_map(findings, place, {} if root is None else root, keys.PACK, "a pack")
    if root is not None and type(root) is not dict:
        return None
    _check_top(findings, place, top)
    findings.incomplete |= any(top.get(section) is BAD for section in (*_ITEM_TABLES, "rules", "machine", "extends"))
    items: list[Item] = []
    for section, table in _ITEM_TABLES.items():
        if type(top.get(section)) is dict:
            items += _map_items(findings, place.child(section), section, top[section], table)
    if type(top.get("rules")) is list:
        items += _rule_items(findings, place.child("rules"), top["rules"])
    if type(top.get("machine")) is dict:
        where = place.child("machine")
        fields = check_map(findings, where, top["machine"], keys.MACHINE, "the machine")
        items.append(Item("machine", "machine", fields, where))
    defaults = top.get("defaults")
    if type(defaults) is dict:
        defaults = check_map(findings, place.child("defaults"), defaults, keys.DEFAULTS, "`defaults`")
    name, desc, extends = (top.get(k) for k in ("pack", "desc", "extends"))
    return File(
        place,
        name if type(name) is str else "",
        desc if type(desc) is str else "",
        None if extends is BAD else extends or [],
        items,
        defaults if type(defaults) is dict else {},
    )


def _check_version(findings: Findings, place: Place, root: dict[Any, Any]) -> bool:
    if "stabilitykit" not in root:
        return True
    version = root["stabilitykit"]
    if type(version) is int and version == keys.VERSION:
        return True
    message = f"this reader has version {keys.VERSION} of the language"
    findings.add(place.child("stabilitykit"), "SK204", message, hint=f"`stabilitykit: {keys.VERSION}`")
    return False


def _check_top(findings: Findings, place: Place, top: dict[str, Any]) -> None:
    if "stabilitykit" not in top:
        message = "the file does not say its language version"
        findings.add(place, "SK204", message, hint=f"`stabilitykit: {keys.VERSION}` as the first line")
    if top.get("pack") is None:
        findings.add(place, "SK202", f"a pack needs `pack`: {keys.PACK['pack'].doc}")


def _map_items(findings: Findings, place: Place, section: str, items: dict[Any, Any], table: Table) -> list[Item]:
    found = []
    for name, value in items.items():
        if findings.is_full(place):
            break
        where = place.child(name)
        sound = _check_name(findings, where, str(name)) and type(value) is dict
        what = f"{section[:-1]} `{name}`"
        if section == "detectors":
            fields = _detector_fields(findings, where, value, what)
        else:
            fields = check_map(findings, where, value, table, what)
        found.append(Item(section, str(name), fields, where, broken=not sound))
    return found


def _detector_fields(findings: Findings, place: Place, value: Any, what: str) -> dict[str, Any]:
    """Check the keys every detector has; the others are its type's business."""
    if type(value) is not dict:
        findings.add(place, "SK203", f"{what} must be a mapping, not {_type_name(value)}")
        return {}
    own = {k: v for k, v in value.items() if k in keys.DETECTOR}
    rest = {k: v for k, v in value.items() if k not in keys.DETECTOR}
    return {**check_map(findings, place, own, keys.DETECTOR, what), **rest}


def _rule_items(findings: Findings, place: Place, rules: list[Any]) -> list[Item]:
    found: list[Item] = []
    first: dict[str, Place] = {}
    for index, value in enumerate(rules):
        if findings.is_full(place):
            break
        where = place.child(index)
        fields = check_map(findings, where, value, keys.RULE, "a rule")
        if type(value) is not dict:
            continue
        rule_id = fields.get("rule")
        if rule_id is None:
            findings.add(where, "SK202", f"a rule needs `rule`: {keys.RULE['rule'].doc}")
        elif rule_id in first:
            message = f"rule `{rule_id}` stands here twice, first in line {first[rule_id].line}"
            findings.add(where.child("rule"), "SK309", message)
        elif rule_id is not BAD:
            first[rule_id] = where
            found.append(Item("rules", rule_id, fields, where))
    return found


def _type_name(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")
