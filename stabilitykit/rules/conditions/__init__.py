"""Conditions and guards: from text to checked nodes."""
