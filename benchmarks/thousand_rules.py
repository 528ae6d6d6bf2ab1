"""1,000 three-valued rules against what a generator of plain Python gives."""

from __future__ import annotations

from benchmarks.measure import Figure, over, significant, times
from benchmarks.peers import engine_of
from benchmarks.workload import NAMES, Rule, pack_text, rules, scale, turns
from stabilitykit import Turn


def generated(made: list[Rule]):
    """Kleene logic in plain Python: 2 true, 1 unknown, 0 false; streaks hold through unknown."""
    lines = ["def decide(streak, d):", " fired = []"]
    lines += [f" {name} = d[{name!r}]" for name in NAMES]
    for i, rule in enumerate(made):
        parts = [
            f"(1 if {name} is None else 2 if {name} {sign} {limit * scale(name)!r} else 0)"
            for name, sign, limit in rule.comparisons
        ]
        known = " and ".join(f"{name} is not None" for name, _, _ in rule.comparisons)
        plain = f" {rule.word} ".join(f"{n} {s} {v * scale(n)!r}" for n, s, v in rule.comparisons)
        slow = parts[0] if len(parts) == 1 else f"{'min' if rule.word == 'and' else 'max'}({', '.join(parts)})"
        lines.append(f" v = (2 if {plain} else 0) if {known} else {slow}")
        if rule.streak > 1:
            lines += [" if v == 2:", f"  streak[{i}] += 1", f"  if streak[{i}] >= {rule.streak}: fired.append({i})"]
            lines.append(f" elif v == 0: streak[{i}] = 0")
        else:
            lines.append(f" if v == 2: fired.append({i})")
    lines.append(" return fired")
    space: dict = {}
    exec("\n".join(lines), space)
    return space["decide"]


def run() -> list[Figure]:
    made, given = rules(1000), turns(1000)
    engine, decide = engine_of(pack_text(made)), generated(made)
    for k, (_, d) in enumerate(given):  # one value in twenty is not there
        d[NAMES[k % len(NAMES)]] = None
    streaks = {s: [0] * len(made) for s, _ in given}
    ours = [Turn(session_id=f"s{s % 50}", **d) for s, d in given]
    names = [rule.id for rule in made]
    check = {s: [0] * len(made) for s in range(50)}
    for turn, (s, d) in zip(ours, given, strict=True):
        want = [names[i] for i in decide(check[s % 50], d)]
        assert want == [m.rule for m in engine.evaluate(turn).matches], turn
    live = engine._live
    call, address = live.call, live.address
    feed = [(streaks[s], d) for s, d in given]
    bare, whole, python = (
        t / len(given)
        for t in times([over(ours, lambda _: call(address)), over(ours, engine.evaluate), over(feed, lambda a: decide(*a))], 9)
    )
    note = f"{bare / 1e3:.2f} and {whole / 1e3:.2f} us against {python / 1e3:.1f} us"
    return [
        Figure("thousand_rules_pass", "1,000 rules, bare pass / generated Python", significant(bare / python), 0.0333, note),
        Figure("thousand_rules_evaluate", "1,000 rules, evaluate / generated Python", significant(whole / python), 0.0556),
    ]
