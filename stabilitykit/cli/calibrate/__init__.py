"""``stabilitykit calibrate``: models from dialogues, thresholds from healthy recordings."""

from __future__ import annotations

import typer

from stabilitykit.cli.calibrate.drift_pack import calibrate_drift
from stabilitykit.cli.calibrate.intent import calibrate_intent
from stabilitykit.cli.calibrate.thresholds import calibrate_thresholds

__all__ = ["app"]

app = typer.Typer(help="Fit a model or a threshold to data of your own.", no_args_is_help=True, rich_markup_mode=None)
app.command("drift")(calibrate_drift)
app.command("intent")(calibrate_intent)
app.command("thresholds")(calibrate_thresholds)
