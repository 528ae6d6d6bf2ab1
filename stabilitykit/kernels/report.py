"""One event when compiled code or its cache cannot be had; through ``logging``, at DEBUG unless someone must act."""

from __future__ import annotations

import logging

__all__ = ["report"]


_warned: set[tuple[str, str]] = set()


def report(event: str, problem: BaseException, *, warn: bool = False) -> None:
    """Log an event with the kind of the problem, never its text: that could hold a path.

    Parameters
    ----------
    event, problem
        What could not be done, and why.
    warn
        Whether it is a defect: WARNING the first time in this process, DEBUG like all else after that.
    """
    import structlog  # 0.1 s: paid only by a process that has something to report

    log = structlog.wrap_logger(
        logging.getLogger("stabilitykit.kernels"),
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
    )
    reason = type(problem).__name__
    if warn and (event, reason) not in _warned:
        _warned.add((event, reason))
        log.warning(event, reason=reason)
    else:
        log.debug(event, reason=reason)
