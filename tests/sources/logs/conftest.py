"""The shipped templates, compiled once, and a file of templates."""

from __future__ import annotations

import pytest

from stabilitykit.sources.logs import Matcher, read_templates, shipped_templates


@pytest.fixture(scope="session")
def matcher():
    """Compile what is shipped."""
    return Matcher(shipped_templates())


@pytest.fixture
def templates(tmp_path):
    """Read templates written as YAML below a head."""

    def read(text):
        path = tmp_path / "mine.yaml"
        path.write_text("log_templates: 1\nfamily: mine\ntemplates:\n" + text, encoding="utf-8")
        return read_templates([path])

    return read
