"""explain() of a decision against zen-engine's evaluate with trace, on the peers' workload."""

from __future__ import annotations

import json

from benchmarks.measure import Figure, over, significant, times
from benchmarks.peers import engine_of
from benchmarks.workload import expression, pack_text, rules, turns
from stabilitykit import Turn


def zen_table(made):
    import zen

    def node(name, kind, **more):
        return {"id": name, "type": kind, "name": name, "position": {"x": 0, "y": 0}, **more}

    rows = [{"_id": rule.id, "c": expression(rule), "o": json.dumps(rule.id)} for rule in made]
    table = {
        "hitPolicy": "collect",
        "inputs": [{"id": "c", "name": "c"}],
        "outputs": [{"id": "o", "name": "o", "field": "o"}],
        "rules": rows,
    }
    nodes = [node("in", "inputNode"), node("t", "decisionTableNode", content=table), node("out", "outputNode")]
    edges = [
        {"id": f"e{k}", "sourceId": a, "targetId": b, "type": "edge"}
        for k, (a, b) in enumerate((("in", "t"), ("t", "out")))
    ]
    return zen.ZenEngine().create_decision(zen.ZenDecisionContent(json.dumps({"nodes": nodes, "edges": edges})))


def run() -> list[Figure]:
    made, given = rules(), turns(2000)
    engine, zen = engine_of(pack_text(made)), zen_table(made)
    decisions = [engine.evaluate(Turn(session_id=f"s{s}", **d)) for s, d in given][-200:]
    data = [d for _, d in given][-200:]
    ours, theirs = times(
        [over(decisions, lambda d: d.explain()), over(data, lambda d: zen.evaluate(d, {"trace": True}))], 9
    )
    note = f"{ours / 2e5:.0f} us against {theirs / 2e5:.0f} us"
    return [Figure("explain_zen", "explain / zen-engine's evaluate with trace", significant(ours / theirs), 0.1, note)]
