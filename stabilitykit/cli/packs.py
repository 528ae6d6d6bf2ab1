"""The packs a command works on: loaded, laid out, and the engine built as the options say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from stabilitykit.engine import Engine
from stabilitykit.errors import UsageError
from stabilitykit.rules.load import load_pack
from stabilitykit.rules.pack import Pack
from stabilitykit.rules.shipped import shipped_names

__all__ = ["PackOption", "ParamOption", "engine_of", "names_or_shipped", "pack_of", "values_of"]

PackOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pack", "-p", metavar="PACK", help="A shipped pack or a path; repeat to lay one over another [chat]."
    ),
]
ParamOption = Annotated[
    list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="Value of a param of the pack; repeatable.")
]


def values_of(params: Sequence[str] | None) -> dict[str, str | float | bool]:
    """Read ``name=value`` options; a bare number is in the unit of the param's default.

    Raises
    ------
    UsageError
        No ``=``.
    """
    values: dict[str, str | float | bool] = {}
    for text in params or ():
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--param wants name=value, not {text!r}")
        values[name.strip()] = _value(value.strip())
    return values


def _value(text: str) -> str | float | bool:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def pack_of(names: Sequence[str] | None, params: Sequence[str] | None = None) -> Pack:
    """Load the pack of the options, ``chat`` when they name none."""
    from stabilitykit.detectors import DETECTORS

    return load_pack(list(names or ["chat"]), params=values_of(params), detectors=DETECTORS)


def engine_of(names: Sequence[str] | None, params: Sequence[str] | None = None) -> Engine:
    """Build the engine of the options; a recording is not forgotten by age."""
    return Engine.load(list(names or ["chat"]), params=values_of(params), ttl_s=None)


def names_or_shipped(names: Sequence[str] | None) -> list[str]:
    """Give the packs named, or all that are shipped."""
    return list(names or shipped_names())


def cases_beside(name: str) -> Path | None:
    """Find the cases of a pack: ``x.test.yaml`` beside ``x.yaml``."""
    from stabilitykit.rules.shipped import shipped_path

    path = Path(name) if "/" in name or name.endswith(".yaml") else shipped_path(name)
    beside = path.with_name(f"{path.name.removesuffix('.yaml')}.test.yaml") if path else None
    return beside if beside and beside.is_file() else None
