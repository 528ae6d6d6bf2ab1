"""The HTML report of a replay: one file, inline SVG, nothing fetched from anywhere."""

from stabilitykit.cli.report.page import Report, Section

__all__ = ["Report", "Section"]
