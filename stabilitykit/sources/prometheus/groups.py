"""One page, sorted by whose it is: a replica for each model, engine and rank, a device for each GPU.

Series of one owner that differ only in a label of a shard (tensor and pipeline ranks, processes)
show the same thing several times, so the greatest is taken; those that differ in any other label
(a finish reason, a source) are parts, so they are added up. Ratios and GPU readings are never
added up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import attrs

from stabilitykit.signals import CATALOGUE
from stabilitykit.sources.prometheus.lines import Page, Problems, Series, wanted_series
from stabilitykit.sources.prometheus.names import TABLE, Selector, selector, spellings, used_metrics

__all__ = ["MAX_OWNERS", "Group", "Owner", "read_groups"]

MAX_OWNERS = 256
"""Replicas and devices of one page."""

Owner = tuple[tuple[str, str], ...]
"""Whose a series is: the labels that say it, by our names for them."""

_REPLICA = {"model_name": "model", "model": "model", "name": "model", "engine": "engine", "dp_rank": "dp_rank"}
_DEVICE = {"Hostname": "host", "hostname": "host", "gpu": "gpu", "GPU_I_ID": "instance"}
_SHARDS = ("tp_rank", "pp_rank", "moe_ep_rank", "pid")
_DEVICE_PREFIX = "DCGM_"


@attrs.frozen(eq=False)
class Group:
    """What one page says of one owner.

    Parameters
    ----------
    scope
        ``replica`` or ``device``.
    owner
        Its labels.
    values
        By metric, as the table writes it. A negative number is a sentinel of "nothing" and left out.
    """

    scope: str
    owner: Owner
    values: Mapping[str, float]


def _by_name() -> dict[bytes, tuple[Selector, ...]]:
    found: dict[bytes, dict[str, Selector]] = defaultdict(dict)
    for text in used_metrics():
        chosen = selector(text)
        for name in spellings(chosen.name):
            found[name.encode()][text] = chosen
    return {name: tuple(chosen.values()) for name, chosen in found.items()}


_BY_NAME = _by_name()
_NOT_ADDED = frozenset(
    text
    for row in TABLE
    if row.form == "gauge" and CATALOGUE[row.signal].unit in ("ratio", "C")
    for text in row.metrics
)


class _Owned:
    """The values of one owner while the page is read: by metric, by shard."""

    def __init__(self) -> None:
        self.shards: dict[str, dict[Owner, float]] = defaultdict(dict)

    def take(self, metric: str, shard: Owner, value: float) -> None:
        """Add one series."""
        held = self.shards[metric]
        if shard not in held:
            held[shard] = value
        elif metric in _NOT_ADDED or metric.startswith(_DEVICE_PREFIX):
            held[shard] = max(held[shard], value)
        else:
            held[shard] += value

    def values(self) -> dict[str, float]:
        """Give the greatest shard of each metric."""
        return {metric: max(shards.values()) for metric, shards in self.shards.items()}


def read_groups(page: Page, problems: Problems) -> list[Group]:
    """Sort a page by owner.

    An owner with fewer labels than another (a metric without a model name) is that other one, where there is only one
    such; facts in the labels of an info metric hold for all of them.
    """
    owned: dict[tuple[str, Owner], _Owned] = defaultdict(_Owned)
    facts: list[tuple[Owner, str, float]] = []
    for series in wanted_series(page, _BY_NAME.keys(), problems):
        for chosen in _BY_NAME[series.name.encode()]:
            scope = "device" if series.name.startswith(_DEVICE_PREFIX) else "replica"
            if chosen.label:
                facts += _fact(series, chosen)
            elif _is_meant(series, chosen):
                key = scope, _labels(series, _DEVICE if scope == "device" else _REPLICA)
                if key in owned or len(owned) < MAX_OWNERS:
                    owned[key].take(chosen.text, _shard(series), series.value)
                else:
                    problems.add(series.line, f"{series.name}: of more than {MAX_OWNERS} replicas and devices")
    return [
        Group(scope, owner, _facts_of(owner, facts) | values if scope == "replica" else values)
        for scope, owner, values in _joined(owned)
    ]


def _is_meant(series: Series, chosen: Selector) -> bool:
    if series.value < 0.0 and chosen.name != "DCGM_FI_DEV_GPU_TEMP":  # a sentinel; only a temperature may be below 0
        return False
    if chosen.where is None:
        return True
    label, wanted = chosen.where
    given = series.labels.get(label, "")
    return given == wanted or f"'{wanted}'" in given  # a server once published the text of a whole mapping as a label


def _fact(series: Series, chosen: Selector) -> Iterator[tuple[Owner, str, float]]:
    text = series.labels.get(chosen.label, "")
    if text.isascii() and text.isdigit() and len(text) < 16:
        yield _labels(series, _REPLICA), chosen.text, float(text)


def _labels(series: Series, known: Mapping[str, str]) -> Owner:
    return tuple(sorted({(known[label], text) for label, text in series.labels.items() if label in known}))


def _shard(series: Series) -> Owner:
    return tuple((label, series.labels[label]) for label in _SHARDS if label in series.labels)


def _facts_of(owner: Owner, facts: list[tuple[Owner, str, float]]) -> dict[str, float]:
    return {metric: value for about, metric, value in facts if set(about) <= set(owner)}


def _joined(owned: Mapping[tuple[str, Owner], _Owned]) -> Iterator[tuple[str, Owner, dict[str, float]]]:
    values = {key: held.values() for key, held in owned.items()}
    for (scope, owner), mine in list(values.items()):
        wider = [key for key in values if key[0] == scope and set(owner) < set(key[1])]
        if len(wider) == 1:
            values[wider[0]] = mine | values[wider[0]]
            del values[scope, owner]
    for (scope, owner), mine in values.items():
        yield scope, owner, mine
