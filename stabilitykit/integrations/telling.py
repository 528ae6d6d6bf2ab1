"""How an integration says that something went wrong: in the log, never to the host's caller."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import structlog

__all__ = ["tell"]

_standard = logging.getLogger("stabilitykit")


def tell(event: str, **fields: Any) -> None:
    """Log one event; a broken log pipeline must not cost the host its reply."""
    with contextlib.suppress(Exception):
        if structlog.is_configured():
            structlog.get_logger("stabilitykit").warning(event, **fields)
        else:
            _standard.warning("%s %s", event, " ".join(f"{key}={value}" for key, value in fields.items()))
