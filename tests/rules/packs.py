"""Packs for tests: two small detectors, a head with a machine, and errors by a mark in the text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.pack import Pack
from stabilitykit.signals import DetectorSpec, Layout, OutputSpec, SettingSpec

MARK = "¦"
"""Stands in a text right before the place where a problem is expected."""

HEAD = "stabilitykit: 1\npack: test\nextends: [base]\n"


def _spec(
    kind: str, inputs: Mapping[str, str], settings: list[SettingSpec], outputs: list[OutputSpec], **more: Any
) -> DetectorSpec:
    return DetectorSpec(
        kind,
        f"a {kind} of the tests",
        inputs,
        tuple(settings),
        tuple(outputs),
        kernel=lambda *_: 0,
        layout=lambda _: Layout(f8=2),
        config=lambda _: (),
        **more,
    )


SPECS = {
    spec.type: spec
    for spec in (
        _spec(
            "breaker",
            {"input": "itl_ms"},
            [
                SettingSpec("factor", 0.2, "how much", unit="ratio", kind="number", lo=0, hi=1),
                SettingSpec("floor", 5.0, "least", unit="ms", kind="number", lo=0, hi=1e6),
                SettingSpec("cold", True, "whether", kind="bool"),
            ],
            [OutputSpec("is_over", "bool", "over", "bool", 0, 1), OutputSpec("baseline_ms", "ms", "usual", lo=0)],
        ),
        _spec(
            "drift",
            {"input": "embedding"},
            [
                SettingSpec("method", "plain", "how", "enum", "enum", values=("plain", "corrected")),
                SettingSpec("window", 5, "turns", "count", "count", 2, 64, shapes_memory=True),
                SettingSpec("dim", 384, "components", "count", "count", 1, 8192, shapes_memory=True),
            ],
            [OutputSpec("is_drift", "bool", "drift", "bool", 0, 1), OutputSpec("distance", "ratio", "far", lo=0, hi=2)],
        ),
        _spec(
            "spread",
            {"input": ""},
            [],
            [OutputSpec("p99", "input", "99 in 100 are below"), OutputSpec("is_warm", "bool", "warm", "bool", 0, 1)],
            default_scope="replica",
        ),
    )
}


def load(folder: Path, text: str, *, params: Mapping[str, Any] | None = None, **others: str) -> Pack:
    """Load a pack from text; ``others`` are further files (``a`` becomes ``a.yaml``)."""
    for name, content in others.items():
        (folder / f"{name}.yaml").write_text(content, encoding="utf-8")
    path = folder / "test.yaml"
    path.write_text(text, encoding="utf-8")
    return load_pack(path, params=params, detectors=SPECS)


def refused(folder: Path, text: str, **others: Any) -> tuple[Problem, ...]:
    """Load a pack that must be refused, and give its problems."""
    try:
        load(folder, text, **others)
    except PackError as error:
        return error.problems
    raise AssertionError("the pack was loaded")


def expect_problems(folder: Path, text: str, *codes: str, **others: Any) -> tuple[Problem, ...]:
    """Check that exactly these problems are found, each at its mark, in this order."""
    places = []
    while MARK in text:
        before, _, after = text.partition(MARK)
        places.append((before.count("\n") + 1, len(before) - before.rfind("\n")))
        text = before + after
    found = refused(folder, text, **others)
    expected = [(code, line, col) for code, (line, col) in zip(codes, places, strict=True)]
    assert [(p.code, p.line, p.col) for p in found] == expected, "\n".join(map(str, found))
    return found
