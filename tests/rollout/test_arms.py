"""The draw: sticky, of the given share, keyed, and growing without moving anybody back."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import UsageError
from stabilitykit.rollout import CONTROL, TREATMENT, Arms


@given(st.text(max_size=30) | st.binary(max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_a_greater_share_moves_nobody_back(session, one, other):
    """Who is in treatment at a share is there at every greater one; 0 is nobody and 1 everybody."""
    small, great = sorted((one, other))
    assert (Arms(b"k", small).of(session) == TREATMENT) <= (Arms(b"k", great).of(session) == TREATMENT)
    assert (Arms(b"k", 0.0).of(session), Arms(b"k", 1.0).of(session)) == (CONTROL, TREATMENT)


@pytest.mark.capability("issue 5 §6: rollout: arms by a keyed hash of the session, sticky in every process")
def test_sticky():
    """Another process draws the same arms; another key draws others."""
    names = [f"c-{k}" for k in range(64)]
    code = "import sys; from stabilitykit.rollout import Arms; a = Arms(b'key'); print(*map(a.of, sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [Arms(b"key").of(name) for name in names]
    assert done.stdout.split() != [Arms(b"other").of(name) for name in names]


def test_two_tenants():
    """Sessions of one id are drawn apart: of those in treatment in one tenant half are in another."""
    arms = Arms(b"key")
    both = [arms.of(f"c-{k}", tenant="two") for k in range(20_000) if arms.of(f"c-{k}", tenant="one") == TREATMENT]
    assert abs(both.count(TREATMENT) / len(both) - 0.5) < 0.02
    assert arms.of("c-1", tenant="") == arms.of("c-1")


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
def test_the_share(share):
    """Of 20,000 conversations the share is in treatment within four standard deviations."""
    arms = Arms(b"key", share)
    drawn = sum(arms.of(f"c-{k}") == TREATMENT for k in range(20_000))
    assert abs(drawn - 20_000 * share) < 4 * (20_000 * share * (1 - share)) ** 0.5


def test_two_keys_draw_independently():
    """Of those in treatment under one key half are in treatment under another."""
    one, other = Arms(b"one"), Arms(b"other")
    both = [other.of(f"c-{k}") for k in range(20_000) if one.of(f"c-{k}") == TREATMENT]
    assert abs(both.count(TREATMENT) / len(both) - 0.5) < 0.02


@pytest.mark.parametrize(("key", "share"), [(b"", 0.5), (b"x" * 65, 0.5), (b"k", 1.5), (b"k", float("nan"))])
def test_misuse(key, share):
    """No key, one too long, and no share are the host's mistakes; a key is not shown."""
    with pytest.raises(UsageError):
        Arms(key, share)
    assert "secret" not in repr(Arms(b"secret"))
