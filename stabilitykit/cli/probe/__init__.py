"""``stabilitykit probe``: multi-turn load on a server, each turn evaluated as it happens; and two probes compared."""

from __future__ import annotations

from stabilitykit.cli.probe.app import app

__all__ = ["app"]
