from __future__ import annotations

from stabilitykit.rules.load import load_pack
from stabilitykit.rules.shipped import shipped_dir, shipped_names, shipped_path
from tests.rules.packs import SPECS


def test_shipped_packs_are_found_by_name():
    """`base` is there in a checkout; its cases and unknown names are no packs."""
    assert "base" in shipped_names()
    assert shipped_path("base") == shipped_dir() / "base.yaml"
    assert shipped_path("no-such-pack") is None
    assert not any(name.endswith(".test") for name in shipped_names())


def test_an_installed_wheel_has_them_inside(tmp_path, monkeypatch):
    """`_packs` beside the modules wins over the folder of a checkout."""
    from stabilitykit.rules import shipped

    monkeypatch.setattr(shipped, "_PACKAGE", tmp_path)
    shipped_dir.cache_clear()
    try:
        assert shipped_dir() == tmp_path.parent / "rules"
        (tmp_path / "_packs").mkdir()
        shipped_dir.cache_clear()
        assert shipped_dir() == tmp_path / "_packs"
    finally:
        monkeypatch.undo()
        shipped_dir.cache_clear()


def test_base_is_the_breaker_of_the_design():
    """Four states, from least to most severe, and the way between them."""
    pack = load_pack("base", detectors=SPECS)
    assert [s.name for s in pack.states] == ["healthy", "warning", "recovering", "broken"]
    assert pack.initial == "healthy"
    assert [(t.to, t.for_turns, t.after) for t in pack.transitions] == [
        ("broken", 1, 0),
        ("warning", 1, 0),
        ("healthy", 2, 0),
        ("recovering", 1, 5),
        ("healthy", 3, 0),
    ]
    assert [a.name for a in pack.states[-1].while_] == ["switch_model"]
