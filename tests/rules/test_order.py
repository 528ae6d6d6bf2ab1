from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.rules.order import find_cycles, references, topological

IDS = [f"r{i}" for i in range(8)]


def test_references_are_found_as_the_grammar_writes_them():
    """Blanks around the colon are allowed; each id comes once; other words are none."""
    text = "rule:a and rule : b-c or not rule:a and rule_count > 3"
    assert references(text) == ("a", "b-c")
    assert references("itl_ms > 80 ms") == ()


@given(st.dictionaries(st.sampled_from(IDS), st.lists(st.sampled_from([*IDS, "unknown"]), max_size=3).map(tuple)))
def test_the_order_respects_every_reference(names):
    """Each id is placed after those it names, or stands in a circle or behind one."""
    order, circling = topological(names)
    assert sorted([*order, *circling]) == sorted(names)
    for place, i in enumerate(order):
        assert set(names[i]) & set(names) <= set(order[:place])
    cycles = find_cycles(circling, names)
    assert bool(cycles) is bool(circling)
    for cycle in cycles:
        assert cycle[0] == cycle[-1]
        assert all(b in names[a] for a, b in itertools.pairwise(cycle))


def test_without_references_the_pack_order_stays():
    """The order of the file is kept where nothing speaks against it."""
    assert topological({"b": (), "a": (), "c": ("a",)}) == (["b", "a", "c"], [])
