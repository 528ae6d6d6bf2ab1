"""Options that name packs and params."""

from __future__ import annotations

import pytest

from stabilitykit.cli.packs import cases_beside, names_or_shipped, values_of
from stabilitykit.errors import UsageError
from stabilitykit.rules.shipped import shipped_names


def test_values():
    """A number is a number, true is true, the rest is text for the language to read."""
    found = values_of(["a=1", "b=2.5", "c=true", "d=80 ms", "e=x=y"])
    assert found == {"a": 1, "b": 2.5, "c": True, "d": "80 ms", "e": "x=y"}
    assert type(found["a"]) is int
    with pytest.raises(UsageError):
        values_of(["a"])


def test_names():
    """No name means every shipped pack."""
    assert names_or_shipped(None) == list(shipped_names())
    assert names_or_shipped(["x.yaml"]) == ["x.yaml"]


def test_cases_beside(tmp_path):
    """Cases have the pack's name; a pack without them has none."""
    (tmp_path / "x.test.yaml").write_text("")
    assert cases_beside(str(tmp_path / "x.yaml")) == tmp_path / "x.test.yaml"
    assert cases_beside(str(tmp_path / "y.yaml")) is None
    assert cases_beside("no-such-pack") is None
