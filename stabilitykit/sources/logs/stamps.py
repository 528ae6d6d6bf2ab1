"""When a line was written, in seconds of one clock, from the stamps that servers put before their lines."""

from __future__ import annotations

import re
from calendar import timegm
from datetime import datetime

__all__ = ["time_of"]

_HEAD = 200
"""Bytes at the beginning of a line in which a stamp is looked for."""
_STAMP = re.compile(
    rb"(?P<full>(?P<y>\d{4})[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T -]{1,3}(?P<t>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?))"
    rb"|timestamp=(?P<epoch>\d{10})\b"
    rb"|(?P<us>(?P<umo>\d\d)/(?P<ud>\d\d)/(?P<uy>\d{4})-(?P<ut>\d\d:\d\d:\d\d))"
    rb"|\b(?P<short>(?P<smo>\d\d)-(?P<sd>\d\d) (?P<st>\d\d:\d\d:\d\d))"
    rb"|\b(?P<m>\d+)\.(?P<s>\d\d)\.(?P<ms>\d\d\d)\.(?P<mus>\d\d\d) [DIWE]\b"
    rb"|\[(?P<only>\d\d:\d\d:\d\d(?:\.\d+)?)[ \]]"
)
_NO_YEAR = 2000
"""For stamps without a year: any leap year will do, only differences count."""


def time_of(line: bytes) -> float | None:
    """Give the time a line says, ``None`` when it says none. Zones are ignored: one log has one.

    Examples
    --------
    >>> time_of(b"[2025-03-07 21:49:45 TP9] x") - time_of(b"[2025-03-07 21:49:33 TP13] x")
    12.0
    >>> time_of(b"1148.24.913.094 W srv update_slots: x")
    68904.913094
    """
    found = _STAMP.search(line, 0, _HEAD)
    if found is None:
        return None
    part = found.groupdict()
    try:
        if part["full"]:
            return _date(int(part["y"]), int(part["mo"]), int(part["d"])) + _clock(part["t"])
        if part["epoch"]:
            return float(part["epoch"])
        if part["us"]:
            return _date(int(part["uy"]), int(part["umo"]), int(part["ud"])) + _clock(part["ut"])
        if part["short"]:
            return _date(_NO_YEAR, int(part["smo"]), int(part["sd"])) + _clock(part["st"])
    except ValueError:  # 99-99 is no date
        return None
    if part["only"]:
        return _clock(part["only"])
    return int(part["m"]) * 60 + int(part["s"]) + int(part["ms"]) / 1e3 + int(part["mus"]) / 1e6


def _date(year: int, month: int, day: int) -> float:
    return float(timegm(datetime(year, month, day).timetuple()))


def _clock(text: bytes) -> float:
    hours, minutes, seconds = text.replace(b",", b".").split(b":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)
