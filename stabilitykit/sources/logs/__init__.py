"""Log lines of servers and drivers: a line to fields, behaviours and confidence, a series of lines to samples.

Templates are data (``stabilitykit/data/log_templates``), compiled to one google-re2 set with a literal prefilter.
Needs ``pip install 'stabilitykit[logs]'``.
"""

from __future__ import annotations

from stabilitykit.sources.logs.lines import Block, Counts, blocks, open_log, read_blocks
from stabilitykit.sources.logs.matcher import Found, Line, Matcher
from stabilitykit.sources.logs.reading import read_templates, shipped_files, shipped_templates
from stabilitykit.sources.logs.series import Series
from stabilitykit.sources.logs.template import Field, Template
from stabilitykit.sources.logs.vocabulary import BEHAVIOURS, DIMENSIONS

__all__ = [
    "BEHAVIOURS",
    "DIMENSIONS",
    "Block",
    "Counts",
    "Field",
    "Found",
    "Line",
    "Matcher",
    "Series",
    "Template",
    "blocks",
    "open_log",
    "read_blocks",
    "read_templates",
    "shipped_files",
    "shipped_templates",
]
