from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.mitigations.context.choosing import Part, cover


@st.composite
def forests(draw):
    """Give units in parts, what each value is worth, and the room."""
    worth = draw(st.lists(st.floats(0, 1), min_size=1, max_size=8))
    part = st.tuples(st.floats(0.5, 9), st.lists(st.integers(0, len(worth) - 1), max_size=3, unique=True))
    units = []
    for parts in draw(st.lists(st.lists(part, min_size=1, max_size=6), max_size=5)):
        parents = [draw(st.integers(0, k - 1)) if k else -1 for k in range(len(parts))]
        units.append([Part(p, cost, holds) for p, (cost, holds) in zip(parents, parts, strict=True)])
    return units, np.array(worth), draw(st.floats(0, 60))


def missing(parts, taken, k):
    """Give the tokens of a part and of what it needs that is not taken."""
    cost = 0.0
    while k >= 0 and k not in taken:
        cost, k = cost + parts[k].cost, parts[k].parent
    return cost


@given(forests())
def test_never_over_the_room_and_none_left_that_fits(forest):
    """What is taken fits, with all that it hangs from; of what is not taken nothing would."""
    units, worth, room = forest
    taken = [set[int]() for _ in units]
    order = cover(units, worth, room, taken)
    assert sorted(order) == [(u, k) for u, own in enumerate(taken) for k in sorted(own)]
    spent = sum(units[u][k].cost for u, k in order)
    assert spent <= room + 1e-9
    for parts, own in zip(units, taken, strict=True):
        assert all(parts[k].parent in own for k in own if parts[k].parent >= 0)
        assert all(missing(parts, own, k) > room - spent - 1e-9 for k in range(len(parts)) if k not in own)
    again = [set[int]() for _ in units]
    assert cover(units, worth, room, again) == order


@given(forests())
def test_parents_come_first(forest):
    """What was taken last can be given back alone."""
    units, worth, room = forest
    order = cover(units, worth, room, [set() for _ in units])
    place = {one: n for n, one in enumerate(order)}
    assert all(units[u][k].parent < 0 or place[u, units[u][k].parent] < n for (u, k), n in place.items())


def test_a_value_counts_once():
    """A second unit with the same value gives way to one with another; with that of a unit that stays, too."""
    units = [[Part(-1, 4, [0])], [Part(-1, 4, [0])], [Part(-1, 4, [1])], [Part(-1, 4, [2])]]
    worth = np.array([0.9, 0.3, 0.2])
    assert cover(units, worth, 8, [set() for _ in units]) == [(1, 0), (2, 0)]
    assert cover(units, worth, 4, [{0}, set(), set(), set()]) == [(2, 0)]


def test_parts_of_a_long_unit():
    """The part that holds a value is taken without its sisters, and with what it hangs from."""
    long = [Part(-1, 5, []), Part(0, 2, []), Part(1, 3, [0]), *(Part(0, 30, [1]) for _ in range(3))]
    taken = [set[int](), set[int]()]
    cover([long, [Part(-1, 9, [2])]], np.array([0.9, 0.01, 0.5]), 20, taken)
    assert taken == [{0, 1, 2}, {0}]
