"""One debug event when compiled code or its cache cannot be had; through ``logging``, so silent unless asked."""

from __future__ import annotations

import logging

__all__ = ["report"]


def report(event: str, problem: BaseException) -> None:
    """Log an event with the kind of the problem, never its text: that could hold a path."""
    import structlog  # 0.1 s: paid only by a process that has something to report

    log = structlog.wrap_logger(
        logging.getLogger("stabilitykit.kernels"),
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
    )
    log.debug(event, reason=type(problem).__name__)
