"""From fired rules and states to actions: collection in order, duplicates, conflict groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stabilitykit.decision import Action, ActionSpec, Suppressed

__all__ = ["resolve_actions"]


def resolve_actions(
    wanted: Iterable[Action], table: Mapping[str, ActionSpec]
) -> tuple[tuple[Action, ...], tuple[Suppressed, ...]]:
    """Resolve conflicts among actions that stand in order of precedence.

    One name appears once, the earlier wins, unless it is declared ``many``; per conflict group
    only the best rank stays, whoever asked; a surviving action drops those it makes void.

    Examples
    --------
    >>> from stabilitykit.decision import ACTIONS, Action
    >>> kept, lost = resolve_actions([Action("trim_context", {}), Action("reset_context", {})], ACTIONS)
    >>> [a.name for a in kept], [(s.action.name, s.winner) for s in lost]
    (['reset_context'], [('trim_context', 'reset_context')])
    """
    kept: list[Action] = []
    lost: list[Suppressed] = []
    for action in wanted:
        same = [k for k in kept if k.name == action.name]
        if any(k.params == action.params for k in same):
            continue
        if same and not table[action.name].many:
            lost.append(Suppressed(action, action.name))
            continue
        kept.append(action)
    kept, beaten = _by_group(kept, table)
    lost += beaten
    names = {a.name for a in kept}
    for action in list(kept):
        winner = next((n for n in sorted(names) if action.name in table[n].drops), None)
        if winner is not None:
            kept.remove(action)
            lost.append(Suppressed(action, winner))
    order = {name: k for k, name in enumerate(sorted(table, key=lambda n: (table[n].order, n)))}
    kept.sort(key=lambda a: order[a.name])
    return tuple(kept), tuple(lost)


def _by_group(kept: Sequence[Action], table: Mapping[str, ActionSpec]) -> tuple[list[Action], list[Suppressed]]:
    best: dict[str, str] = {}
    for action in kept:
        spec = table[action.name]
        if spec.group and (spec.group not in best or spec.rank < table[best[spec.group]].rank):
            best[spec.group] = action.name
    stay, lost = [], []
    for action in kept:
        winner = best.get(table[action.name].group, action.name)
        if winner == action.name:
            stay.append(action)
        else:
            lost.append(Suppressed(action, winner))
    return stay, lost
