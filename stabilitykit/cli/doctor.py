"""``stabilitykit doctor``: what is installed, what is compiled, where things are."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer

from stabilitykit import __version__
from stabilitykit.cli.doctor_server import ContextOption, SharedOption, SilentOption, examine_server
from stabilitykit.cli.output import Part, line, plain, record
from stabilitykit.kernels.cache import cache_directory, open_store
from stabilitykit.kernels.compile import is_available
from stabilitykit.rules.shipped import shipped_dir, shipped_names

__all__ = ["doctor"]

_NEEDED = ("attrs", "jinja2", "numba", "llvmlite", "numpy", "pydantic", "PyYAML", "structlog")
_OPTIONAL = ("typer", "rich", "pyarrow")


def doctor(
    server: Annotated[str | None, typer.Option("--server", metavar="URL", help="Examine a server instead.")] = None,
    context: ContextOption = 8192,
    shared_prefix: SharedOption = None,
    is_silent: SilentOption = False,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what this installation is made of, and whether it runs compiled; or what to set on a server.

    Exit codes: 0 nothing to say, 1 something to set on the server, 2 it does not answer.
    """
    if server is not None:
        examine_server(server, context, shared_prefix, ask=not is_silent, is_json=is_json)
        return
    found = _examine()
    if is_json:
        record(found)
        return
    for part, facts in found.items():
        line((part, "bold"))
        for name, value in facts.items():
            line(f"  {name:<14} ", *_shown(value))


def _shown(value: Any) -> list[Part]:
    if value is None:
        return [("not there", "yellow")]
    if isinstance(value, bool):
        return [("yes", "green") if value else ("no", "yellow")]
    return [plain(", ".join(value) if isinstance(value, (list, tuple)) else value)]


def _examine() -> dict[str, dict[str, Any]]:
    return {
        "versions": {
            "stabilitykit": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{name: _version_of(name) for name in (*_NEEDED, *_OPTIONAL)},
        },
        "compiler": {"available": is_available(), "compiled": _is_compiled(), "NUMBA_DISABLE_JIT": _environ()},
        "cache": _cache(),
        "packs": {"folder": str(shipped_dir()), "shipped": list(shipped_names())},
    }


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _environ() -> str:
    return os.environ.get("NUMBA_DISABLE_JIT", "not set")


def _is_compiled() -> bool:
    """Tell whether an engine built here runs compiled code."""
    from stabilitykit.engine import Engine

    return Engine.load("base").is_compiled


def _cache() -> dict[str, Any]:
    directory, store = cache_directory(), open_store()
    facts: dict[str, Any] = {"folder": str(directory), "usable": store is not None}
    if store is not None:
        files = list(directory.glob("*.code"))
        facts["files"] = f"{len(files)}, {sum(f.stat().st_size for f in files) / 1e6:.2f} MB"
    facts["interpreter"] = sys.executable
    return facts
