"""Is this conversation still healthy? A Turn in, a Decision out, in microseconds.

Every name below is loaded on first use: ``import stabilitykit`` costs next to nothing and
imports neither numba nor pydantic.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stabilitykit.decision import Action, Decision, Fault, Match, Reason, Receipt
    from stabilitykit.engine import Engine
    from stabilitykit.errors import PackError, RecordError, ReloadRefused, StabilityKitError, UsageError
    from stabilitykit.turn import Turn
    from stabilitykit.turn_record import TurnRecord

__all__ = [
    "Action",
    "Decision",
    "Engine",
    "Fault",
    "Match",
    "PackError",
    "Reason",
    "Receipt",
    "RecordError",
    "ReloadRefused",
    "StabilityKitError",
    "Turn",
    "TurnRecord",
    "UsageError",
    "__version__",
]

__version__ = "0.1.0.dev0"

_HOMES = {
    "decision": ("Action", "Decision", "Fault", "Match", "Reason", "Receipt"),
    "engine": ("Engine",),
    "errors": ("PackError", "RecordError", "ReloadRefused", "StabilityKitError", "UsageError"),
    "turn": ("Turn",),
    "turn_record": ("TurnRecord",),
}
_HOME = {name: f"{__name__}.{module}" for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load an exported name from its module (PEP 562), once."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
