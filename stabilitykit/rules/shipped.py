"""Where the packs that come with the library are: beside it in a checkout, inside it in a wheel."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

__all__ = ["shipped_dir", "shipped_names", "shipped_path"]

_PACKAGE = Path(__file__).resolve().parent.parent


@lru_cache(maxsize=1)
def shipped_dir() -> Path:
    """Give the folder of the shipped packs.

    Returns
    -------
    Path
        ``stabilitykit/_packs`` of an installed wheel, else ``rules`` of the checkout.
    """
    installed = _PACKAGE / "_packs"
    return installed if installed.is_dir() else _PACKAGE.parent / "rules"


def shipped_path(name: str) -> Path | None:
    """Find a shipped pack by its bare name, ``None`` when there is none."""
    path = shipped_dir() / f"{name}.yaml"
    return path if path.is_file() else None


def shipped_names() -> tuple[str, ...]:
    """List the names of all shipped packs, sorted."""
    return tuple(sorted(p.stem for p in shipped_dir().glob("*.yaml") if not p.name.endswith(".test.yaml")))
