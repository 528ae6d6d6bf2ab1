"""What a scrape or a GPU reading saw: Sample, the counterpart of a Turn for wider scopes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from stabilitykit.turn import MISSING

__all__ = ["Sample"]


@attrs.frozen(kw_only=True, eq=False)
class Sample:
    """One sample of a replica or a device, as ``Engine.observe`` takes it.

    Parameters
    ----------
    replica, device
        Whose sample it is; ``None`` is the tenant's default one.
    tenant
        Replicas of different tenants never meet.
    timestamp_s
        When it was measured, in seconds of any steady clock.
    signals
        Replica and device signals by name.

    Examples
    --------
    >>> Sample(replica="r1", timestamp_s=3.5, signals={"waiting_requests": 4.0}).replica
    'r1'
    """

    replica: str | None = None
    device: str | None = None
    tenant: str = ""
    timestamp_s: float = MISSING
    signals: Mapping[str, Any] = attrs.field(factory=dict)
