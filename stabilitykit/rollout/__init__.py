"""Try a pack on real conversations before it decides: in shadow, or on a share of them, with a report at the end."""

from __future__ import annotations

from stabilitykit.rollout.arms import CONTROL, TREATMENT, Arms
from stabilitykit.rollout.record import Rollout
from stabilitykit.rollout.report import Report, read_report

__all__ = ["CONTROL", "TREATMENT", "Arms", "Report", "Rollout", "read_report"]
