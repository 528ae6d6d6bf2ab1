"""``stabilitykit probe URL``: load, evaluated turn by turn."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import attrs
import typer

from stabilitykit import __version__
from stabilitykit.cli.output import Interrupted, fail, record
from stabilitykit.cli.packs import ParamOption, engine_of
from stabilitykit.cli.probe.client import Answer, Client, Server, server_of
from stabilitykit.cli.probe.figures import Figures, hit_ratio
from stabilitykit.cli.probe.files import Names, recorded, recorded_sample, write
from stabilitykit.cli.probe.load import REPLICA, Load, Plan
from stabilitykit.cli.probe.objectives import Objective, read_objective
from stabilitykit.cli.probe.prompts import shipped_prompts
from stabilitykit.cli.probe.screen import live, show, show_objectives
from stabilitykit.cli.probe.shares import Shares
from stabilitykit.cli.report import Report, Section
from stabilitykit.cli.report.heat import heat_svg
from stabilitykit.cli.summary import Summary
from stabilitykit.cli.tones import tones
from stabilitykit.engine import Engine
from stabilitykit.engine.replay import Step, replay
from stabilitykit.errors import RecordError, UsageError
from stabilitykit.rules.conditions.suggest import did_you_mean
from stabilitykit.rules.pack import Pack
from stabilitykit.sample import Sample
from stabilitykit.sources.latency_heat import LatencyHeat
from stabilitykit.sources.openai import TurnRecorder
from stabilitykit.sources.server_facts import ServerFacts, look

__all__ = ["run"]

_PACKS = {"vLLM": "vllm", "SGLang": "sglang", "llama.cpp": "llamacpp", "Ollama": "ollama"}
_HOPS = 12_000
"""Ten minutes of the heat map; a longer load keeps its last ones."""


class Watched:
    """Everything that is kept of a load, and the engine that decides on it."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.pack = engine, engine.pack
        self.figures, self.summary = Figures(), Summary(engine.pack)
        self.shares, self.report = Shares(), Report(engine.pack)
        self.heat = LatencyHeat(hops=_HOPS)
        self.lines: list[str] = []
        self.turns: list[dict[str, Any]] = []

    def take(self, told: Answer | Sample) -> None:
        """Take an answer or a sample in, and decide."""
        if isinstance(told, Sample):
            self.figures.add_sample(told)
            self.lines.append(recorded_sample(told))
            self._decide(told)
            return
        self.figures.add(told)
        self.lines.append(recorded(told))
        self.shares.add(told.turn)
        self._stamp(told)
        step = self._decide(told.turn)
        self.turns.append(_compact(told, step.decision.state))

    def _decide(self, entry: Any) -> Step:
        (step,) = replay(self.engine, [entry])
        self.summary.add(step)
        self.report.add(step)
        return step

    def _stamp(self, answer: Answer) -> None:
        name = (answer.turn.session_id, answer.turn.turn_id)
        self.heat.add(name, "sent", answer.sent_ns)
        for number, (at, _) in enumerate(answer.chunks):
            self.heat.add(name, "token" if number else "first", at)
        self.heat.add(name, "end", answer.end_ns)

    def page(self, names: Names) -> str:
        """Write the report."""
        drawn = heat_svg(self.heat.map())
        head = ("conversation", "turns", "first token / answer", "excess", "first token", "gaps", "whole answer")
        rows = [
            (s.session, str(s.turns), _percent(s.first_token), "-" if s.excess != s.excess else f"{s.excess:.2f}",
             *map(_percent, (s.ttft, s.itl, s.rt)))
            for s in self.shares.rows()
        ]  # fmt: skip
        heat = Section("When gaps were long", "Every gap between two chunks: windows of 100 ms, gaps in steps of 5 ms.")
        shares = Section(
            "What answers wait for",
            "The share of the time before the first token; and how far turns lie above the conversation's own usual "
            "times, with what makes it up (A2.3). Eight turns are needed to know what is usual.",
        )
        sections = [attrs.evolve(heat, svg=drawn)] if drawn else []
        return self.report.render([names.recording], 0, [*sections, attrs.evolve(shares, head=head, rows=rows)])


def run(
    url: Annotated[str, typer.Argument(help="Address of an OpenAI-compatible server.")],
    sessions: Annotated[int, typer.Option("--sessions", min=1, max=4096, help="Conversations at a time.")] = 8,
    turns: Annotated[int, typer.Option("--turns", min=1, max=100_000, help="Turns of each.")] = 12,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Longest answer.")] = 64,
    model: Annotated[str | None, typer.Option("--model", help="Model to ask for [the server's first].")] = None,
    key_from: Annotated[
        str | None, typer.Option("--key-from", metavar="VARIABLE", help="Environment variable with the API key.")
    ] = None,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Ask for answers of full length (vLLM, SGLang, llama.cpp).")
    ] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, help="Longest silence, seconds.")] = 120.0,
    scrape_every: Annotated[
        float, typer.Option("--scrape-every", min=0.0, help="Seconds between looks at /metrics; 0: none.")
    ] = 1.0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Writes OUTPUT.jsonl (recording), .json (figures), .html.")
    ] = Path("probe"),
    slo: Annotated[
        list[str] | None, typer.Option("--slo", metavar="OBJECTIVE", help="'ttft_ms.p99 < 800'; repeatable.")
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="STATE", help="Exit with 1 at this state or a worse one [the broken ones]."),
    ] = None,
    pack: Annotated[
        list[str] | None, typer.Option("--pack", "-p", metavar="PACK", help="Packs [that of the server, else chat].")
    ] = None,
    params: ParamOption = None,
    is_json: Annotated[bool, typer.Option("--json", help="The figures as one JSON object on stdout.")] = False,
) -> None:
    """Hold conversations with a server and evaluate each turn as it happens.

    Exit codes: 0 clean, 1 an objective or a state is violated, 2 no server or wrong use, 130 interrupted (what there is
    is written).
    """
    base, names = server_of(url), Names.of(output)
    objectives = [read_objective(text) for text in slo or ()]
    facts = _facts(base, model)
    engine = engine_of(pack or [_PACKS.get(facts.server, "chat")], params)
    bad = _bad_states(engine.pack, fail_on)
    plan = Plan(sessions, turns, max_tokens, scrape_every)
    server = Server(base, model or facts.model, _more(facts, ignore_eos), _key(key_from), timeout)
    load, watched = _load(server, facts, plan), Watched(engine)
    first, is_complete = _watch(load, watched, plan)
    met = {objective: objective.holds(watched.figures.values(objective.signal)) for objective in objectives}
    settings = {**_settings(facts, server, plan), "is_complete": is_complete}
    told = {**settings, **_outcome(watched, first, met, load.metrics_problem)}
    write(names, watched.lines, told, watched.page(names))
    if is_json:
        record({key: value for key, value in told.items() if key != "per_turn"})
    else:
        show(watched.figures, watched.summary, first, load.metrics_problem)
        show_objectives(objectives, watched.figures)
    if not is_complete:
        raise Interrupted(f"{watched.figures.asked:,} of {sessions * turns:,} turns")
    if not all(met.values()) or any(map(watched.summary.reached, bad)) or not watched.figures.answered:
        fail(1)


def _load(server: Server, facts: ServerFacts, plan: Plan) -> Load:
    epoch_s = time.time() - time.perf_counter()
    recorder = TurnRecorder(replica=REPLICA, context_window_tokens=facts.context_tokens)
    client = Client(server, recorder, epoch_s)
    return Load(client, shipped_prompts(), plan, server.base, lambda: epoch_s + time.perf_counter())


def _watch(load: Load, watched: Watched, plan: Plan) -> tuple[Answer | None, bool]:
    """Take everything in; gives the first answer, and whether the load went to its end."""
    first = None
    try:
        first = load.warm_up()
        with live(watched.figures, watched.summary, plan.sessions * plan.turns) as draw:
            for told in load.run():
                watched.take(told)
                draw()
    except KeyboardInterrupt:
        return first, False
    return first, True


def _facts(base: str, model: str | None) -> ServerFacts:
    try:
        return look(base, ask=False)
    except RecordError:
        if model is None:
            raise
        return ServerFacts()  # it may only answer what it is asked with a key


def _key(variable: str | None) -> str | None:
    if variable is not None and not os.environ.get(variable):
        raise UsageError(f"--key-from: the environment has no {variable}")
    return os.environ[variable] if variable is not None else None


def _more(facts: ServerFacts, ignore_eos: bool) -> dict[str, Any]:
    """Give the fields of a request that not every server takes."""
    more: dict[str, Any] = {"include_metrics": True} if facts.server == "vLLM" else {}
    return {**more, "ignore_eos": True} if ignore_eos else more


def _bad_states(pack: Pack, named: str | None) -> Sequence[str]:
    names = [state.name for state in pack.states]
    if named is None:
        return [name for name in names if tones(pack)[name] == "bad"]
    if named not in names:
        raise UsageError(f"--fail-on: no state {named!r} in this pack; {did_you_mean(named, names)}")
    return names[names.index(named) :]


def _settings(facts: ServerFacts, server: Server, plan: Plan) -> dict[str, Any]:
    prompts = shipped_prompts()
    return {
        "stabilitykit_probe": 1,
        "version": __version__,
        "url": server.base,
        "server": facts.server or None,
        "model": server.model,
        "context_window_tokens": facts.context_tokens,
        "prompts": {"name": prompts.name, "sha256": prompts.sha256},
        "plan": attrs.asdict(plan),
    }


def _outcome(
    watched: Watched, first: Answer | None, met: dict[Objective, bool], metrics_problem: str
) -> dict[str, Any]:
    values = watched.figures.values
    cold = {name: _known(getattr(first.turn, name)) for name in ("ttft_ms", "rt_ms")} if first else None
    return {
        "first_request": cold,
        "figures": {**watched.figures.to_dict(), "first_token_share": watched.shares.first_token()},
        "objectives": [
            {"objective": o.text, "value": o.value(values(o.signal)), "is_met": is_met} for o, is_met in met.items()
        ],
        "summary": watched.summary.to_dict(0),
        "metrics_problem": metrics_problem or None,
        "per_turn": watched.turns,
    }


def _compact(answer: Answer, state: str) -> dict[str, Any]:
    turn = answer.turn
    names = ("ttft_ms", "itl_ms", "rt_ms", "input_tokens", "cached_tokens", "output_tokens")
    return {
        "session_id": turn.session_id,
        "turn_id": turn.turn_id,
        **{name: _known(getattr(turn, name)) for name in names},
        "kv_hit_ratio": hit_ratio(turn),
        "error": turn.error,
        "state": state,
    }


def _known(value: float) -> float | None:
    return value if value == value else None


def _percent(share: float) -> str:
    return "-" if share != share else f"{100 * share:.0f} %"
