"""``stabilitykit health``: how a server or a recording is, indicator by indicator."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any
from urllib.parse import urlsplit

import attrs
import typer

from stabilitykit.cli.bands import INDICATORS, PACKS, Indicator, Params, Seen, Watched, watch
from stabilitykit.cli.output import Part, fail, note, plain, record, table
from stabilitykit.cli.packs import PackOption, pack_of
from stabilitykit.cli.recording import MapOption, Recording
from stabilitykit.errors import RecordError
from stabilitykit.rules.conditions.units import unit_of
from stabilitykit.sample import Sample
from stabilitykit.sources.prometheus import DERIVED, TABLE, PageReader, scrape
from stabilitykit.sources.prometheus.names import selector, spellings

__all__ = ["health"]

_LOGS = (".log", ".txt", ".out", ".err")
_DAY_S = 86_400.0
_BEGUN = "since the server started"
_OVER_TIME = ("mean_prefill_ms", "prefix_hit_ratio")
"""Signals of an interval; the others are of the moment."""
_STYLES = {"healthy": "green", "warning": "yellow", "risk": "bold red", "unknown": ""}


@attrs.frozen
class Row:
    """One indicator of one replica."""

    replica: str
    indicator: Indicator
    watched: Watched | None
    value: float | None
    evidence: str
    command: str
    params: Params

    @property
    def band(self) -> str:
        """Its band."""
        return self.indicator.band(self.value, self.params)


def health(
    target: Annotated[
        str, typer.Argument(help="A server's address, a recording (JSON lines, CSV, Parquet), or a server's .log.")
    ],
    interval: Annotated[
        float,
        typer.Option("--interval", min=0.0, max=_DAY_S, help="Seconds between two looks at a server; 0: look once."),
    ] = 5.0,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, max=_DAY_S, help="Seconds to wait for a server.")
    ] = 5.0,
    maps: MapOption = None,
    pack: PackOption = None,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show each indicator of health with its band, what it was seen in, and the command that shows it.

    The bounds are params of the shipped packs; those of --pack take their place.

    Exit codes: 0 no risk, 1 a risk, 2 no answer or nothing known.
    """
    params = _params(pack)
    if target.lower().startswith(("http://", "https://")):
        rows = _of_server(target, interval, timeout, params)
    else:
        rows = _of_file(Path(target), maps, params)
    if all(row.value is None for row in rows):
        raise RecordError(f"{target}: holds none of the signals that health looks at")
    if is_json:
        record({"target": target, "indicators": [_as_dict(row) for row in rows]})
    else:
        _show(rows)
    if any(row.band == "risk" for row in rows):
        fail(1)


def _params(packs: Sequence[str] | None) -> Params:
    """Give the params of the shipped packs, in their units, with the values of others where these have them too."""
    params = dict(pack_of(PACKS).params)
    for name, given in pack_of(packs).params.items() if packs else ():
        own, unit = params.get(name), unit_of(given.unit)
        usual = unit_of(own.unit) if own else None
        if own and unit and usual and unit.dim == usual.dim and isinstance(given.value, int | float):
            params[name] = attrs.evolve(own, value=given.value * float(unit.scale / usual.scale), doc=given.doc)
    return params


def _of_server(url: str, interval: float, timeout: float, params: Params) -> list[Row]:
    try:
        address = url if urlsplit(url).path.strip("/") else url.rstrip("/") + "/metrics"
    except ValueError as error:
        raise RecordError(f"{url}: {error}") from None
    reader, seen = PageReader(from_start=True), Seen()
    page = scrape(address, timeout)
    for sample in reader.read(page):
        watch(seen, sample)
    evidence = {id(w): _BEGUN if w.signal in _OVER_TIME else "now" for held in seen.values() for w in held.values()}
    if interval > 0.0:
        time.sleep(interval)
        page = scrape(address, timeout)
        evidence |= _look_again(seen, reader.read(page), interval)
    for problem in reader.problems:
        note(("left out ", "yellow"), plain(problem))
    told = (lambda _, watched: evidence.get(id(watched), "")), (lambda signal: _curl(address, signal, page))
    return _rows(seen, *told, params)


def _look_again(seen: Seen, samples: Sequence[Sample], interval: float) -> dict[int, str]:
    """Put what a second look shows in the place of the first; a growth is between both."""
    evidence = {}
    for sample in samples:
        newer = Seen()
        watch(newer, sample)
        for replica, found in newer.items():
            held = seen.setdefault(replica, {})
            for indicator in INDICATORS:
                watched = found.get(indicator.title)
                if watched is None:
                    continue
                if indicator.kind == "growth" and indicator.title in held:
                    held[indicator.title].add(watched.last)
                else:
                    held[indicator.title] = watched
                is_over_time = indicator.kind == "growth" or watched.signal in _OVER_TIME
                evidence[id(held[indicator.title])] = f"in {interval:g} s" if is_over_time else "now"
    return evidence


def _of_file(path: Path, maps: Sequence[Path] | None, params: Params) -> list[Row]:
    seen = Seen()
    if path.name.lower().removesuffix(".gz").endswith(_LOGS) and not maps:
        for sample in _of_log(path):
            watch(seen, sample)
    else:
        recording = Recording([path], maps, pack_of(None), keep_going=True)
        for entry in recording.entries():
            watch(seen, entry)
        recording.report()
    return _rows(seen, _counted, lambda signal: _shown_by(path, signal, maps), params)


def _of_log(path: Path) -> Iterator[Sample]:
    """Read a server's log by the shipped templates."""
    from stabilitykit.sources.logs import Matcher, Series, read_blocks, shipped_templates

    matcher, series = Matcher(shipped_templates()), Series()
    samples = (series.take(line) for block in read_blocks(path) for line in matcher.scan(block))
    yield from (sample for sample in samples if sample is not None)


def _rows(
    seen: Seen, evidence: Callable[[Indicator, Watched], str], command: Callable[[str], str], params: Params
) -> list[Row]:
    rows = []
    for replica, held in sorted(seen.items()) or [("", {})]:
        for indicator in INDICATORS:
            watched = held.get(indicator.title)
            if watched is None:
                rows.append(Row(replica, indicator, None, None, f"no {' or '.join(indicator.signals)}", "", params))
                continue
            rows.append(
                Row(
                    replica, indicator, watched, watched.value(indicator), evidence(indicator, watched),
                    command(watched.signal), params,
                )
            )  # fmt: skip
    return rows


def _counted(indicator: Indicator, watched: Watched) -> str:
    values = f"{watched.count} value{'s' * (watched.count != 1)}"
    if indicator.kind == "growth":
        return values
    worst = watched.least if indicator.kind == "floor" else watched.greatest
    word = "least" if indicator.kind == "floor" else "greatest"
    return f"mean of {values}, {word} {_amount(worst, indicator)}"


def _curl(address: str, signal: str, page: bytes) -> str:
    """Give the command that shows the metrics behind a signal: those of the table that are on the page."""
    texts = [m for row in TABLE if row.signal == signal for m in (*row.metrics, *row.over)]
    texts += [m for derived in DERIVED if derived.signal == signal for m in derived.metrics]
    names = dict.fromkeys(name for m in texts for name in sorted(spellings(selector(m).name)))
    there = [name for name in names if re.search(rf"(?m)^{re.escape(name)}[{{ ]".encode(), page)]
    return f"curl -s {quote(address)} | grep -E {quote('^(' + '|'.join(there) + ')[{ ]')}"


def _shown_by(path: Path, signal: str, maps: Sequence[Path] | None) -> str:
    if path.suffix.lower() in (".jsonl", ".ndjson") and not maps:
        wanted = "(cached|input)_tokens" if signal == "kv_hit_ratio" else signal
        return f"grep -oE {quote(chr(34) + wanted + chr(34) + ': ?[0-9.]+')} {quote(str(path))}"
    mapped = "".join(f" --map {quote(str(m))}" for m in maps or ())
    return f"stabilitykit health {quote(str(path))}{mapped} --json"


def _amount(value: float, indicator: Indicator) -> str:
    if indicator.unit == "%":
        return f"{100 * value:.3g} %"
    return f"{value:.4g}" + (" ms" if indicator.unit == "ms" else "")


def _show(rows: Sequence[Row]) -> None:
    has_names = len({row.replica for row in rows}) > 1
    lines: list[list[Part]] = []
    for row in rows:
        value = "" if row.value is None else _amount(row.value, row.indicator)
        cells: list[Part] = [row.indicator.title, value, (row.band, _STYLES[row.band]), row.evidence, row.command]
        lines.append([plain(row.replica), *cells] if has_names else cells)
    head = ["indicator", "value", "band", "evidence", "shown by"]
    table(["replica", *head] if has_names else head, lines)


def _as_dict(row: Row) -> dict[str, Any]:
    indicator, watched = row.indicator, row.watched
    warning, risk = indicator.bounds(row.params)
    return {
        "replica": row.replica or None,
        "indicator": indicator.title,
        "signal": watched.signal if watched else None,
        "value": row.value,
        "unit": "ratio" if indicator.unit == "%" else indicator.unit,
        "band": row.band,
        "warning": warning,
        "risk": risk if math.isfinite(risk) else None,
        "source": indicator.source(row.params),
        "evidence": row.evidence,
        "shown_by": row.command,
    }
