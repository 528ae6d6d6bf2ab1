"""Every action of the language as a class with typed parameters: what a host's adapter is handed.

The classes are made from the action table, one each, named after the action: ``refuse_new`` is ``RefuseNew``.

Examples
--------
>>> directive(Action("refuse_new", {"retry_after_s": 30.0}))
RefuseNew(retry_after_s=30.0)
>>> RefuseNew.from_action(Action("refuse_new", {}))
RefuseNew(retry_after_s=5.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import attrs

from stabilitykit.actions import ACTIONS, Action, ActionSpec, ParamSpec
from stabilitykit.errors import UsageError


@attrs.frozen
class Directive:
    """One action, its parameters checked; ``action`` is its word in the language.

    Raises
    ------
    UsageError
        A parameter is of the wrong kind or outside its domain.
    """

    action: ClassVar[str] = ""

    def __attrs_post_init__(self) -> None:
        for spec in ACTIONS[self.action].params:
            if not _is_valid(spec, getattr(self, spec.name)):
                raise UsageError(f"{self.action}: {spec.name} cannot be {getattr(self, spec.name)!r}")

    @classmethod
    def from_action(cls, action: Action) -> Self:
        """Read an action of this name; what it leaves out has its default.

        Raises
        ------
        UsageError
            Another action's, or a parameter that this one does not have.
        """
        if action.name != cls.action:
            raise UsageError(f"{action.name!r} is no {cls.action}")
        extra = sorted(set(action.params) - {p.name for p in ACTIONS[cls.action].params})
        if extra:
            raise UsageError(f"{cls.action} has no parameter {', '.join(extra)}")
        return cls(**action.params)


def _is_valid(spec: ParamSpec, value: Any) -> bool:
    if spec.kind == "bool":
        return isinstance(value, bool)
    if spec.kind in ("enum", "word"):
        return isinstance(value, str) and value in (spec.values or (value,))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and spec.lo <= value <= spec.hi and (spec.kind == "number" or value == int(value))


_TYPES = {"number": float, "count": int, "bool": bool, "enum": str, "word": str}


def _class_of(spec: ActionSpec) -> type[Directive]:
    fields = {p.name: attrs.field(default=p.default, type=_TYPES[p.kind]) for p in spec.params}
    body = {"action": spec.name, "__doc__": f"{spec.doc[0].upper()}{spec.doc[1:]}.", "__module__": __name__}
    name = spec.name.title().replace("_", "")
    made: type[Directive] = attrs.make_class(name, fields, (Directive,), body, frozen=True, slots=True)
    return made


MITIGATIONS: dict[str, type[Directive]] = {name: _class_of(spec) for name, spec in ACTIONS.items()}
"""The class of every action, in the order of the action table."""
globals().update({kind.__name__: kind for kind in MITIGATIONS.values()})  # imported, and unpickled, by name
__all__ = ["MITIGATIONS", "Directive", "directive", *(kind.__name__ for kind in MITIGATIONS.values())]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def directive(action: Action) -> Directive | None:
    """Give an action as its class; None for one that a pack declares: only its host knows what that means."""
    kind = MITIGATIONS.get(action.name)
    return None if kind is None else kind.from_action(action)
