from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.kernels.siphash import siphash
from stabilitykit.sources.probes import KeyHashMonitor, SipHasher, keys, pack_key

KEY = bytes(range(16))
names = st.text("1a:\0é", max_size=4)
triples = st.tuples(names, st.integers(-(2**63), 2**63 - 1), names)


@given(triples, triples)
def test_no_two_keys_have_the_same_bytes(one, other):
    """Fields with their lengths before them cannot be mistaken for each other."""
    assert (pack_key(*one) == pack_key(*other)) == (one == other)


@given(st.binary(max_size=600))
def test_hasher_is_siphash(data):
    """The compiled hasher gives the definition, longer data than its buffer holds too."""
    assert SipHasher(KEY)(data) == siphash(KEY, data)


def test_without_a_compiler(monkeypatch):
    """Where nothing can be compiled, or compiling fails, the definition serves."""

    def fails(*_):
        raise RuntimeError

    monkeypatch.setattr(keys, "compile_entry", fails)
    assert SipHasher(KEY)(b"abc") == siphash(KEY, b"abc")
    monkeypatch.setattr(keys, "is_available", lambda: False)
    assert SipHasher(KEY)(b"abc") == siphash(KEY, b"abc")


def test_threads_share_a_hasher():
    """Eight threads at once get eight right answers."""
    hasher, wrong = SipHasher(KEY), list[int]()

    def check(number):
        data = bytes([number]) * 40
        want = siphash(KEY, data)
        wrong.extend(found for found in (hasher(data) for _ in range(2000)) if found != want)

    team = [threading.Thread(target=check, args=(n,)) for n in range(8)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert wrong == []


def test_counts_distinct_keys_and_their_buckets():
    """A key that comes twice is one; the window ends with its reading."""
    monitor = KeyHashMonitor(8, hash=lambda data: data[0], least=3)
    for data in (b"\x01", b"\x01", b"\x09"):
        monitor.add_bytes(data)
    assert monitor.signals() == {}
    monitor.add_bytes(b"\x02")
    assert monitor.signals() == {"hash_keys_count": 3, "hash_buckets_count": 8, "hash_occupied_count": 2}
    assert monitor.signals() == {}


def test_gives_the_hash_to_the_table():
    """What is added comes back as its hash under the key; without a key one is drawn."""
    assert KeyHashMonitor(8, key=KEY).add("c-1", 7, "user") == siphash(KEY, pack_key("c-1", 7, "user"))
    drawn = {KeyHashMonitor(8).add("c-1", 7, "user") for _ in range(4)}
    assert len(drawn) == 4


def test_memory_is_bounded():
    """Keys over the capacity are hashed and not counted."""
    monitor = KeyHashMonitor(8, hash=len, least=1, capacity=2)
    assert [monitor.add_bytes(bytes(n)) for n in range(4)] == [0, 1, 2, 3]
    assert monitor.signals()["hash_keys_count"] == 2


def test_a_key_has_16_bytes():
    """Another key is misuse."""
    with pytest.raises(ValueError, match="16 bytes"):
        KeyHashMonitor(8, key=b"short")
