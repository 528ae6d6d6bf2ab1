"""Replies of OpenAI-style servers, whole or streamed, turned into Turns."""

from __future__ import annotations

from stabilitykit.sources.openai.call import Call
from stabilitykit.sources.openai.recorder import TurnRecorder
from stabilitykit.sources.openai.sse import SseDecoder

__all__ = ["Call", "SseDecoder", "TurnRecorder"]
