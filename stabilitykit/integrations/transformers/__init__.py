"""A model of transformers, watched from inside: what it was given and what its cache looks like, turn by turn.

No server tells which positions, which mask and which keys a model works with; hooks in the model do. The package
transformers itself is not imported: any model of PyTorch that is built like those of transformers will do.
"""

from __future__ import annotations

from stabilitykit.integrations.transformers.flow import PositionFlow, RotaryUse, check_position_flow
from stabilitykit.integrations.transformers.keys import rope_of, turn_keys
from stabilitykit.integrations.transformers.watch import ModelWatch

__all__ = ["ModelWatch", "PositionFlow", "RotaryUse", "check_position_flow", "rope_of", "turn_keys"]
