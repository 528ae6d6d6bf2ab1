"""Override, enabled, clashes: many files in order become one set of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from stabilitykit.rules.files import keys
from stabilitykit.rules.files.locate import Findings, Place
from stabilitykit.rules.files.shape import File, Item, check_required

__all__ = ["Merged", "merge"]

_REQUIRED = {
    "params": (keys.PARAM, "a param"),
    "detectors": (keys.DETECTOR, "a detector"),
    "actions": (keys.ACTION, "an action"),
    "rules": (keys.RULE, "a rule"),
    "machine": (keys.MACHINE, "the machine"),
}


@attrs.define
class Merged:
    """What is left when all files are laid over one another.

    Parameters
    ----------
    sections
        Items by section and id, in the order of their first appearance.
    disabled
        Ids removed by ``enabled: false``, by section.
    defaults
        The set's defaults with the place of each.
    """

    sections: dict[str, dict[str, Item]]
    disabled: dict[str, frozenset[str]]
    defaults: dict[str, tuple[Any, Place]]

    def section(self, name: str) -> dict[str, Item]:
        """Give the items of a section."""
        return self.sections.get(name, {})


def merge(findings: Findings, files: Sequence[File]) -> Merged:
    """Lay files over one another, later over earlier.

    Parameters
    ----------
    files
        In linearised order; the last is the pack itself.
    """
    everything: dict[str, dict[str, Item]] = {}
    defaults: dict[str, tuple[Any, Place]] = {}
    for file in files:
        for item in file.items:
            section = everything.setdefault(item.section, {})
            section[item.id] = _lay_over(findings, section, item)
        for key, value in file.defaults.items():
            defaults[key] = (value, file.place.child("defaults", key))
    kept: dict[str, dict[str, Item]] = {}
    disabled: dict[str, frozenset[str]] = {}
    for name, section in everything.items():
        kept[name] = {i: item for i, item in section.items() if item.fields.get("enabled") is not False}
        disabled[name] = frozenset(section.keys() - kept[name].keys())
        if name in _REQUIRED:
            table, what = _REQUIRED[name]
            for item in kept[name].values():
                if not item.broken:
                    check_required(findings, item.place, item.fields, table, what)
    return Merged(kept, disabled, defaults)


def _lay_over(findings: Findings, section: Mapping[str, Item], item: Item) -> Item:
    below = section.get(item.id)
    wants = item.fields.get("override") is True
    if below is None:
        if wants:
            hint = "leave `override` out"
            findings.add(
                item.at("override"), "SK332", f"`{item.id}` overrides nothing", hint=hint, near=(item.id, [*section])
            )
        return item
    if not wants:
        where = f"{below.place.file}:{below.place.line}"
        message = f"{_name(item)} is defined already in {where}"
        place = item.place.child("rule") if item.section == "rules" else item.place
        hint = "`override: true` replaces fields of it"
        findings.add(place, "SK331", message, hint=hint, key=item.section != "rules")
        return item
    if item.broken or below.broken:
        return attrs.evolve(item, broken=True)
    kind = item.fields.get("type")
    if item.section == "detectors" and kind is not None and kind != below.fields.get("type"):
        return item
    inherited = {k: v for k, v in below.fields.items() if k not in item.fields and k != "override"}
    origins = {k: below.origins.get(k, below.place) for k in inherited}
    return Item(item.section, item.id, {**inherited, **item.fields}, item.place, origins)


def _name(item: Item) -> str:
    return "the machine" if item.section == "machine" else f"{item.section[:-1]} `{item.id}`"
