"""``stabilitykit warmup``: compile before the first turn, for image builds."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from stabilitykit.cli.output import fail, line, note, plain, record
from stabilitykit.cli.packs import names_or_shipped
from stabilitykit.engine import Engine
from stabilitykit.kernels.cache import cache_directory, open_store

__all__ = ["warmup"]


def warmup(
    packs: Annotated[
        list[str] | None, typer.Argument(metavar="[PACK]...", help="Shipped packs or paths [all shipped].")
    ] = None,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Compile what packs need and keep it in the cache, so that a new process starts at once.

    Exit codes: 0 compiled, 1 there is no working compiler (the engine works all the same, slower).
    """
    store = open_store()
    done: list[dict[str, str | bool | float]] = []
    for name in names_or_shipped(packs):
        started = time.perf_counter()
        engine = Engine.load(name)
        done.append({"pack": name, "compiled": engine.is_compiled, "seconds": round(time.perf_counter() - started, 3)})
        if not is_json:
            how = ("compiled", "green") if engine.is_compiled else ("not compiled", "yellow")
            line((plain(name), "bold"), ": ", how, f" in {done[-1]['seconds']} s")
    if is_json:
        record({"cache": str(cache_directory()) if store else None, "packs": done})
    if store is None:
        note(("warning: ", "yellow"), "no safe cache directory: every process compiles for itself")
    if not all(d["compiled"] for d in done):
        fail(1)
