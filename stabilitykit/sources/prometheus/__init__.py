"""A page of metrics, or a scrape, as samples of replicas and devices (extra ``prometheus``).

Which metric becomes which signal stands in one table (`names.py`), which is also a page of the
reference. Metrics belong to the whole engine, so they are never a session's.
"""

from __future__ import annotations

from stabilitykit.sources.prometheus.lines import PageProblem
from stabilitykit.sources.prometheus.names import DERIVED, TABLE
from stabilitykit.sources.prometheus.reader import PageReader
from stabilitykit.sources.prometheus.scraping import scrape

__all__ = ["DERIVED", "TABLE", "PageProblem", "PageReader", "scrape"]
