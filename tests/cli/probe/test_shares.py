from __future__ import annotations

import math

import pytest

from stabilitykit.cli.probe.shares import Shares
from stabilitykit.turn import Turn


def test_shares():
    """Eight usual turns, then a first token a second later: the excess is the first token's."""
    shares = Shares()
    usual: dict = {"rt_ms": 3000.0, "ttft_ms": 500.0, "itl_ms": 25.0, "output_tokens": 101.0}
    for _ in range(8):
        shares.add(Turn(session_id="a", **usual))
    shares.add(Turn(session_id="a", **{**usual, "rt_ms": 4000.0, "ttft_ms": 1500.0}))
    shares.add(Turn(session_id="b", **usual))
    shares.add(Turn(session_id="b", error="server"))
    a, b = shares.rows()
    assert (a.session, a.turns, b.turns) == ("a", 9, 1)
    assert a.first_token == pytest.approx((8 * 500 + 1500) / (8 * 3000 + 4000))
    assert a.ttft > 0.8
    assert a.ttft + a.itl + a.rt == pytest.approx(1.0)
    assert math.isnan(b.excess)
    assert shares.first_token() == pytest.approx(6000 / 31000)


def test_nothing_seen():
    """Without a turn there is no share."""
    assert Shares().first_token() is None
