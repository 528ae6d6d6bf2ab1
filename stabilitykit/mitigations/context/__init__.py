"""Trim, summarise or reset the messages of a conversation."""

from stabilitykit.mitigations.context.index import ContextIndex
from stabilitykit.mitigations.context.reset import reset
from stabilitykit.mitigations.context.scoring import Policy
from stabilitykit.mitigations.context.tokens import estimate_tokens
from stabilitykit.mitigations.context.trim import Trimmed, trim

__all__ = ["ContextIndex", "Policy", "Trimmed", "estimate_tokens", "reset", "trim"]
