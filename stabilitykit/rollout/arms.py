"""Which arm a conversation is in: by a keyed hash of its id, so that it stays there, in every process."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import attrs

from stabilitykit.engine.identity import check_key, plain_bytes, salt_of
from stabilitykit.errors import UsageError

__all__ = ["CONTROL", "GREATEST", "TREATMENT", "Arms"]

CONTROL, TREATMENT = "control", "treatment"
GREATEST = 1e100
"""Of a finding: the squares of greater ones have no place in a float64."""


@attrs.frozen
class Arms:
    """The draw: a share of conversations is in ``treatment``, the others in ``control`` (formulas B2.5).

    A greater share moves conversations from ``control`` to ``treatment`` and none back.

    Parameters
    ----------
    key
        Secret of the hash, 1 to 64 bytes: nobody outside can choose an id to be in an arm. Another rollout takes
        another key, or the same conversations would always be the ones tried on.
    share
        Of conversations in ``treatment``.

    Examples
    --------
    >>> arms = Arms(b"2026-12 new pack", share=0.25)
    >>> [arms.of(f"c-{k}") for k in range(4)]
    ['control', 'control', 'treatment', 'control']
    """

    key: bytes = attrs.field(repr=False)
    share: float = 0.5

    def __attrs_post_init__(self) -> None:
        check_key(self.key)
        if not 0.0 <= self.share <= 1.0:
            raise UsageError(f"a share is in [0, 1], not {self.share!r}")

    def of(self, session_id: Any, *, tenant: Any = "") -> str:
        """Give the arm of a conversation."""
        data, salt = plain_bytes(session_id), salt_of(tenant, self.key)
        # `person` keeps this hash apart from the one under which the conversation is recorded with the same key.
        digest = blake2b(data, key=self.key, salt=salt, person=b"rollout arm", digest_size=8).digest()
        return TREATMENT if int.from_bytes(digest, "little") < self.share * 2.0**64 else CONTROL
