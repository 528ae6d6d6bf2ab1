"""Writing logs and mappings."""

from __future__ import annotations

import pytest


@pytest.fixture
def write(tmp_path):
    """Write a text file and give its path."""

    def put(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return put
