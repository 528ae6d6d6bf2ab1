from __future__ import annotations

import re
from typing import Any

import pytest

pytestmark = pytest.mark.oracle


def test_the_page_runs(root):
    """Every block of the how-to runs as it stands, one after the other; `py` keeps it from those without torch."""
    pytest.importorskip("torch", reason="torch is an extra")
    pytest.importorskip("transformers", reason="transformers is an extra")
    page = root / "docs" / "how-to" / "watch-a-transformers-model.md"
    blocks = re.findall(r"^```py\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    namespace: dict[str, Any] = {"__name__": "document"}
    for body in blocks:
        exec(compile(body, page.name, "exec"), namespace)
    assert len(blocks) == 4
    assert namespace["done"].why == ""
