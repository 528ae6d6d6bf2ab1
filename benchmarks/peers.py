"""One evaluate against three ways to do the same: 20 signals, 40 rules, 4 states, 1,000 sessions."""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path

from benchmarks.measure import Figure, over, significant, times
from benchmarks.workload import (
    SESSIONS,
    STATES,
    Helper,
    Rule,
    expression,
    generated,
    pack_text,
    rules,
    scale,
    turns,
)
from stabilitykit import Engine, Turn


def engine_of(text: str, **options) -> Engine:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pack.yaml"
        path.write_text(text)
        return Engine.load(str(path), **options)


def datalogic(made: list[Rule]):
    import datalogic_py

    def logic(rule: Rule):
        parts = [{sign: [{"var": name}, limit]} for name, sign, limit in scaled(rule)]
        return parts[0] if len(parts) == 1 else {rule.word: parts}

    engine = datalogic_py.Engine()
    compiled, evaluate = engine.compile([logic(rule) for rule in made]), engine.session().evaluate
    return lambda helper, d: helper.step(made, evaluate(compiled, d))


def scaled(rule: Rule):
    return [(name, sign, limit * scale(name)) for name, sign, limit in rule.comparisons]


def evalidate(made: list[Rule]):
    from evalidate import base_eval_model

    model = base_eval_model.clone()
    compiled = [model.expr(expression(rule)).eval for rule in made]
    return lambda helper, d: helper.step(made, [met(d) for met in compiled])


def run() -> list[Figure]:
    made, given = rules(), turns()
    engine = engine_of(pack_text(made))
    ours = [Turn(session_id=f"s{s}", turn_id=1 + k // SESSIONS, **d) for k, (s, d) in enumerate(given)]
    peers = {
        "datalogic-py + helper": datalogic(made),
        "evalidate + helper": evalidate(made),
        "if/else": generated(made),
    }
    check(engine, made, ours, given, peers)
    # Everybody finds the session by its id, and the turns go round: nobody is given a turn twice as a duplicate.
    stock = [Turn(session_id=f"s{s}", **d) for s, d in given[:4000]]
    batches = [over(stock, engine.evaluate)]
    for decide in peers.values():
        held = {f"s{s}": Helper(len(made)) for s in range(SESSIONS)}
        feed = [(f"s{s}", d) for s, d in given[:4000]]
        batches.append(over(feed, lambda a, decide=decide, held=held: decide(held[a[0]], a[1])))
    found = times(batches)
    targets = {"datalogic-py + helper": 0.30, "evalidate + helper": 0.45, "if/else": 1.2}
    return [
        Figure(
            f"peers_{name.split()[0].replace('/', '_').replace('-', '_')}",
            f"evaluate / {name} (40 rules)",
            significant(found[0] / t),
            targets[name],
            f"{found[0] / 4e6:.2f} us against {t / 4e6:.2f} us",
        )
        for name, t in zip(peers, found[1:], strict=True)
    ]


def check(engine, made, ours, given, peers) -> None:
    """Everybody decides the same, or nothing is measured."""
    helpers = {name: [Helper(len(made)) for _ in range(SESSIONS)] for name in peers}
    for turn, (s, d) in islice(zip(ours, given, strict=True), 8000):
        decision = engine.evaluate(turn)
        mine = (decision.state, sorted(m.rule for m in decision.matches))
        for name, decide in peers.items():
            state, _, fired = decide(helpers[name][s], d)
            assert (STATES[state], sorted(fired)) == mine, (name, turn, state, fired, mine)
