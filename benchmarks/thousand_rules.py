"""1,000 three-valued rules against what a generator of plain Python gives."""

from __future__ import annotations

from benchmarks.measure import Figure, over, significant, times
from benchmarks.peers import engine_of
from benchmarks.workload import NAMES, Rule, pack_text, rules, scale, turns
from stabilitykit import Turn

# A derived signal that is missing is worked out from others.
PLAIN = [n for n in NAMES if n not in ("session_tokens", "context_usage_ratio", "kv_hit_ratio")]


def generated(made: list[Rule], limit: int):
    """Kleene logic in plain Python: 2 true, 1 unknown, 0 false; through unknown a match holds for a while."""
    lines = ["def decide(session, d):", " fired = []; streak, on, blind = session"]
    lines += [f" {name} = d[{name!r}]" for name in NAMES]
    for i, rule in enumerate(made):
        parts = [
            f"(1 if {name} is None else 2 if {name} {sign} {limit_ * scale(name)!r} else 0)"
            for name, sign, limit_ in rule.comparisons
        ]
        known = " and ".join(f"{name} is not None" for name, _, _ in rule.comparisons)
        plain = f" {rule.word} ".join(f"{n} {s} {v * scale(n)!r}" for n, s, v in rule.comparisons)
        slow = parts[0] if len(parts) == 1 else f"{'min' if rule.word == 'and' else 'max'}({', '.join(parts)})"
        lines.append(f" v = (2 if {plain} else 0) if {known} else {slow}")
        lines.append(f" if v == 0: streak[{i}] = on[{i}] = blind[{i}] = 0")
        lines += [" elif v == 2:", f"  blind[{i}] = 0; streak[{i}] += 1"]
        lines.append(f"  if streak[{i}] >= {rule.streak}: on[{i}] = 1; fired.append({i})")
        lines += [" else:", f"  blind[{i}] += 1", f"  if blind[{i}] > {limit}: streak[{i}] = on[{i}] = 0"]
        lines.append(f"  elif on[{i}]: fired.append({i})")
    lines.append(" return fired")
    space: dict = {}
    exec("\n".join(lines), space)
    return space["decide"]


def sessions(made: list[Rule], count: int) -> list[tuple[list[int], ...]]:
    return [tuple([0] * len(made) for _ in range(3)) for _ in range(count)]


def run() -> list[Figure]:
    made, given = rules(1000), turns(1000)
    engine = engine_of(pack_text(made))
    decide = generated(made, engine.pack.rules[0].hold_limit)
    for k, (_, d) in enumerate(given):  # one value in twenty is not there
        d[PLAIN[(k + k // 50) % len(PLAIN)]] = None
    ours = [
        Turn(session_id=f"s{k % 50}", **{n: v for n, v in d.items() if v is not None}) for k, (_, d) in enumerate(given)
    ]
    names, state = [rule.id for rule in made], sessions(made, 50)
    for k, (turn, (_, d)) in enumerate(zip(ours, given, strict=True)):
        want = [names[i] for i in decide(state[k % 50], d)]
        assert want == [m.rule for m in engine.evaluate(turn).matches], turn
    live = engine._live
    call, address = live.call, live.address
    feed = [(state[k % 50], d) for k, (_, d) in enumerate(given)]
    bare, whole, python = (
        t / len(given)
        for t in times(
            [over(ours, lambda _: call(address)), over(ours, engine.evaluate), over(feed, lambda a: decide(*a))], 9
        )
    )
    note = f"{bare / 1e3:.2f} and {whole / 1e3:.2f} us against {python / 1e3:.1f} us"
    return [
        Figure(
            "thousand_rules_pass", "1,000 rules, bare pass / generated Python", significant(bare / python), 0.0333, note
        ),
        Figure(
            "thousand_rules_evaluate", "1,000 rules, evaluate / generated Python", significant(whole / python), 0.0556
        ),
    ]
