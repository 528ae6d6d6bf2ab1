"""Every detector has a complete page: what it sees, maths, references, when not to use it, who uses it."""

from __future__ import annotations

import re

import pytest

from docs import detector_pages
from stabilitykit.detectors import DETECTORS


@pytest.mark.parametrize("spec", DETECTORS.values(), ids=lambda spec: spec.type)
def test_page_is_complete(spec):
    """The page has every section, every input, setting and output."""
    text = "".join(detector_pages.page(spec))
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    wanted = {"In a pack", "When not to use it", "References", "Examples", "Rules of the shipped packs that use it"}
    assert wanted <= set(heads)
    names = [*spec.inputs, *(setting.name for setting in spec.settings), *(output.name for output in spec.outputs)]
    assert not [name for name in names if f"| `{name}` |" not in text]


def test_rules_name_the_detector_they_use():
    """A rule of a shipped pack stands on the page of the detector it reads, and on no other."""
    pages = {spec.type: "".join(detector_pages.page(spec)) for spec in DETECTORS.values()}
    assert [name for name, text in pages.items() if "| `itl-over-baseline` |" in text] == ["itl_breaker"]
    assert [name for name, text in pages.items() if "| `topic-break` |" in text] == ["intent_drift"]


def test_docstring_is_split_at_its_headings():
    """What stands before the first heading is the text; numbered references become a list."""
    sections = detector_pages.docstring(DETECTORS["baseline"])
    assert sections[""].startswith("What a number usually is")
    assert detector_pages.rst(sections["References"]).startswith("```{eval-rst}\n1. D. H. D. West")
