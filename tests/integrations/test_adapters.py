"""Every action has an adapter that exists and that a test runs."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import time
from functools import partial
from types import SimpleNamespace

import pytest

from stabilitykit.actions import ACTIONS
from stabilitykit.integrations.adapters import ADAPTERS
from stabilitykit.integrations.carrying_out import Host
from stabilitykit.mitigations.applying import APPLIERS
from stabilitykit.mitigations.kv import KVCache, KVPolicy
from stabilitykit.sources.probes import ClockProbe
from tests.integrations.decisions import asking, slow


def cache_with(ages, **lent):
    """Give a cache of one path, with the ages of its blocks."""
    cache = KVCache(KVPolicy("lru", capacity=8), **lent)
    cache.policy.request(list(ages))
    cache.tiers.update(ages)
    return cache


CARRIED = {
    "evict_kv": lambda carry_out, _: partial(carry_out, cache=cache_with({1: 0.1, 2: 0.9})),
    "tier_kv": lambda carry_out, _: partial(carry_out, cache=cache_with({1: 0.5}, move=lambda block, tier: True)),
    "quantize_kv": lambda carry_out, _: partial(carry_out, cache=cache_with({1: 0.1})),
    "release_memory": lambda adapter, _: adapter(),
    "lower_clocks": lambda adapter, _: adapter([0]),
    "pause_background": lambda adapter, job: adapter([job]),
    "resync_clock": lambda adapter, _: adapter(ClockProbe(time.perf_counter_ns)),
}
"""How a host wires each adapter that carries out what a `Host` is handed; given the adapter and a job of the host's."""
IDLE = {"evict_kv": {1: 0.1}, "tier_kv": {1: 0.1}}
"""Caches on which these actions have nothing to do."""


class Driver(SimpleNamespace):
    """Stands in for NVML: changing the clocks of a real card needs an administrator, and harms its other users."""

    def __getattr__(self, name):
        return lambda *arguments: 1980


@pytest.fixture(scope="module")
def called(root):
    """Gather the names that tests call, or hand over to be called: those in their code, not in their imports."""
    names = set()
    for path in (root / "tests").rglob("*.py"):
        if path.name != "test_adapters.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return names


@pytest.fixture
def job():
    """Run a process that may be stopped."""
    running = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield running.pid
    running.kill()
    running.communicate()


def named(name):
    """Give the adapter that is named for an action."""
    module, _, attribute = ADAPTERS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


@pytest.mark.capability("issue 5 §6: every action has a host adapter that a test runs")
@pytest.mark.parametrize("name", ACTIONS)
def test_adapter(called, name):
    """The adapter can be imported and called, and some test does."""
    module, _, attribute = ADAPTERS[name].partition(":")
    adapter = getattr(importlib.import_module(module), attribute)
    assert callable(adapter)
    # A text-level action is run by `decision.apply` through the table of appliers.
    assert APPLIERS.get(name) is adapter or attribute in called


@pytest.mark.capability("issue 5 §6: each adapter that a Host carries does what a real decision asks for")
@pytest.mark.parametrize("name", CARRIED)
def test_carried(tmp_path, monkeypatch, job, name):
    """A decision of a pack goes through Host to the adapter that is named, and comes back as done."""
    monkeypatch.setitem(sys.modules, "pynvml", Driver())
    host = Host({name: CARRIED[name](named(name), job)})
    assert host.carry_out(slow(asking(tmp_path, f"{{{name}: {{}}}}"))).done == (name,)


@pytest.mark.parametrize("name", IDLE)
def test_nothing_to_carry_out(tmp_path, name):
    """An action that found nothing to do is not in the receipt, and that is no failure."""
    cache = cache_with(IDLE[name], move=lambda block, tier: True)
    host = Host({name: partial(named(name), cache=cache)})
    assert host.carry_out(slow(asking(tmp_path, f"{{{name}: {{}}}}"))).done == ()


def test_every_carrier_is_tried():
    """The adapters of caches and machines are all wired above."""
    homes = ("stabilitykit.mitigations.kv.acting", "stabilitykit.integrations.device")
    assert [name for name, path in ADAPTERS.items() if path.partition(":")[0] in homes] == list(CARRIED)


def test_the_lists_are_the_same():
    """Adapters and actions are one list, in one order; what `decision.apply` does is among them."""
    assert list(ADAPTERS) == list(ACTIONS)
    assert set(APPLIERS) < set(ADAPTERS)
