"""Pages of one server, one after the other, as samples of its replicas and devices."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING

from stabilitykit.engine.identity import MAX_ID_BYTES, check_id
from stabilitykit.errors import RecordError
from stabilitykit.sample import Sample
from stabilitykit.signals import CATALOGUE
from stabilitykit.sources.prometheus.counters import Counters
from stabilitykit.sources.prometheus.derived import derived_signals
from stabilitykit.sources.prometheus.groups import MAX_OWNERS, Group, Owner, read_groups
from stabilitykit.sources.prometheus.lines import Page, PageProblem, Problems
from stabilitykit.sources.prometheus.names import TABLE, Row
from stabilitykit.sources.prometheus.scraping import scrape

if TYPE_CHECKING:
    from stabilitykit.decision import Decision
    from stabilitykit.engine import Engine

__all__ = ["PageReader"]

_SCALE = {"": 1.0, "ratio": 1.0, "ratio or percent": 1.0, "percent": 0.01, "s": 1000.0}
_PERCENT = 0.01


class PageReader:
    r"""Reads the pages of one target.

    Rates, means and hit ratios are of the interval between two pages, so the first page has none. Of a bad page what
    can be read is read; what cannot stands in ``problems``, and nothing is raised.

    Parameters
    ----------
    replica, device
        The names that the host's turns use; ``None`` is the default one. Where a page shows several replicas or GPUs,
        what tells them apart follows: ``r1/dp_rank=3``.
    tenant
        Replicas of different tenants never meet.
    clock
        Seconds of the clock whose time the host's turns carry.
    from_start
        Give means and hit ratios of the first page too: of everything since the server started.

    Attributes
    ----------
    problems, problem_count
        What could not be used of the last page: the first of them, and how many.

    Examples
    --------
    >>> reader = PageReader(replica="r1")
    >>> for seconds, tokens in ((0.0, 100), (10.0, 350)):
    ...     page = f"vllm:num_requests_running 2\nvllm:generation_tokens_total {tokens}\n"
    ...     samples = reader.read(page, timestamp_s=seconds)
    >>> samples[0].replica, samples[0].signals
    ('r1', {'running_requests': 2.0, 'generated_tokens_per_s': 25.0})
    """

    def __init__(
        self,
        *,
        replica: str | None = None,
        device: str | None = None,
        tenant: str = "",
        clock: Callable[[], float] = time.monotonic,
        from_start: bool = False,
    ) -> None:
        self._from_start = from_start
        self._names = {"replica": replica, "device": device}
        for scope, name in self._names.items():
            if name is not None:
                check_id(name, scope)
        self._tenant, self._clock = tenant, clock
        self._counters: OrderedDict[tuple[str, Owner], Counters] = OrderedDict()
        self._percent: set[tuple[str, Owner]] = set()
        self._shown: dict[tuple[str, str], str] = {}
        self._telling: set[tuple[str, str]] = set()
        self._problems = Problems()

    @property
    def problems(self) -> list[PageProblem]:
        """The first problems of the last page."""
        return list(self._problems.first)

    @property
    def problem_count(self) -> int:
        """All problems of the last page."""
        return self._problems.count

    def read(self, page: Page, timestamp_s: float | None = None) -> list[Sample]:
        """Read one page.

        Parameters
        ----------
        page
            Text, bytes or a binary stream; at most 16 MiB of it are read.
        timestamp_s
            When it was scraped; the clock's time otherwise.

        Raises
        ------
        MissingExtra
            Without prometheus_client (extra ``prometheus``).
        """
        at = self._clock() if timestamp_s is None else timestamp_s
        self._problems = Problems()
        groups = read_groups(page, self._problems)
        if not groups:
            self._problems.add(0, "no metric of a known server on the page")
        self._note_owners(groups)
        samples = [self._sample(group, at) for group in groups]
        return [sample for sample in samples if sample.signals]

    def observe_into(self, engine: Engine, page: Page, timestamp_s: float | None = None) -> list[Decision]:
        """Read one page and let an engine take its samples; parameters as of ``read``."""
        return [
            engine.observe(
                replica=sample.replica,
                device=sample.device,
                tenant=sample.tenant,
                timestamp_s=sample.timestamp_s,
                **sample.signals,
            )
            for sample in self.read(page, timestamp_s)
        ]

    def scrape_into(self, engine: Engine, url: str, timeout_s: float = 5.0) -> list[Decision]:
        """Scrape a server and let an engine take the samples; a scrape that fails is a problem, no exception."""
        try:
            page = scrape(url, timeout_s)
        except RecordError as error:
            self._problems = Problems()
            self._problems.add(0, str(error))
            return []
        return self.observe_into(engine, page)

    def _note_owners(self, groups: list[Group]) -> None:
        for group in groups:
            for label, text in group.owner:
                if self._shown.setdefault((group.scope, label), text) != text:
                    self._telling.add((group.scope, label))

    def _sample(self, group: Group, at: float) -> Sample:
        signals = self._signals(group, self._moved(group, at))
        name = self._name(group)
        if group.scope == "device":
            return Sample(device=name, tenant=self._tenant, timestamp_s=at, signals=signals)
        return Sample(replica=name, tenant=self._tenant, timestamp_s=at, signals=signals)

    def _name(self, group: Group) -> str | None:
        name = self._names[group.scope]
        told = [f"{label}={text}" for label, text in group.owner if (group.scope, label) in self._telling]
        if not told:
            return name
        full = "/".join([*([] if name is None else [name]), *told]).encode("utf-8", "replace")
        if len(full) > MAX_ID_BYTES:  # labels may be of any length, names may not
            full = full[: MAX_ID_BYTES // 2] + b"~" + blake2b(full, digest_size=8).hexdigest().encode()
        return full.decode("utf-8", "ignore")

    def _moved(self, group: Group, at: float) -> Counters:
        key = (group.scope, group.owner)
        counters = self._counters.pop(key, None)
        if counters is None:
            counters = Counters(is_from_start=self._from_start)
            while len(self._counters) >= MAX_OWNERS:
                forgotten, _ = self._counters.popitem(last=False)
                self._percent.discard(forgotten)
        self._counters[key] = counters
        counters.move(group.values, at)
        return counters

    def _signals(self, group: Group, counters: Counters) -> dict[str, float]:
        found: dict[str, float] = {}
        for row in TABLE:
            if row.signal not in found:
                value = self._value(row, group, counters)
                if value is not None and self._is_valid(row.signal, value):
                    found[row.signal] = value
        for signal, value in derived_signals(group.values).items():
            if signal not in found and self._is_valid(signal, value):
                found[signal] = value
        return found

    def _is_valid(self, signal: str, value: float) -> bool:
        spec = CATALOGUE[signal]
        if spec.lo <= value <= spec.hi and (spec.kind != "count" or value.is_integer()):
            return True
        self._problems.add(0, f"{signal}: outside its domain")
        return False

    def _value(self, row: Row, group: Group, counters: Counters) -> float | None:
        metric = _first(row.metrics, group.values)
        if metric is None:
            return None
        scale = _SCALE[row.unit]
        if row.form == "gauge":
            if row.unit == "ratio or percent":
                scale = self._percent_scale(row, group, group.values[metric])
            return scale * group.values[metric]
        if row.form == "counter":
            return counters.total(metric)
        increase = counters.increase(metric)
        if increase is None:
            return None
        if row.form == "rate":
            return None if counters.elapsed_s is None else increase / counters.elapsed_s
        over = _first(row.over, group.values)
        other = None if over is None else counters.increase(over)
        if other is None:
            return None
        whole = other + increase if row.form == "share" else other
        return scale * increase / whole if whole > 0.0 else None

    def _percent_scale(self, row: Row, group: Group, value: float) -> float:
        key = (group.scope, group.owner)
        if value > 1.0 or row.percent_beside in group.values:
            self._percent.add(key)
        return _PERCENT if key in self._percent else 1.0


def _first(metrics: tuple[str, ...], values: Mapping[str, float]) -> str | None:
    return next((metric for metric in metrics if metric in values), None)
