"""The load: conversations in threads of their own, and beside them the scrapes of the server's page of metrics."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue

import attrs

from stabilitykit.cli.probe.client import Answer, Client
from stabilitykit.cli.probe.prompts import PromptSet
from stabilitykit.errors import MissingExtra, RecordError
from stabilitykit.sample import Sample
from stabilitykit.sources.prometheus import PageReader, scrape

__all__ = ["REPLICA", "Load", "Plan"]

REPLICA = "probe"
"""Name of the server in the recording."""
_MOST_FAILURES = 3
"""A conversation ends after so many requests in a row without an answer."""
_SCRAPE_TIMEOUT_S = 5.0
_JOIN_S = 5.0


@attrs.frozen
class Plan:
    """What is asked for.

    Parameters
    ----------
    sessions, turns
        Conversations at a time, and turns of each.
    max_tokens
        Longest answer.
    scrape_s
        Seconds between two scrapes; 0: none.
    """

    sessions: int = 8
    turns: int = 12
    max_tokens: int = 64
    scrape_s: float = 1.0


class Load:
    """Runs once.

    Parameters
    ----------
    base
        Address whose ``/metrics`` is scraped.
    clock
        Seconds, for the samples; the Turns have their own from the client.

    Attributes
    ----------
    metrics_problem
        Why there is no page of metrics ("" while there is one).
    """

    def __init__(self, client: Client, prompts: PromptSet, plan: Plan, base: str, clock: Callable[[], float]) -> None:
        self._client, self._prompts, self._plan, self._base, self._clock = client, prompts, plan, base, clock
        self._stop = threading.Event()
        self._told: SimpleQueue[Answer | Sample | BaseException | None] = SimpleQueue()
        self.metrics_problem = ""

    def warm_up(self) -> Answer:
        """Send the one request before the load: a server may load, compile or fill its caches first."""
        ask = [{"role": "user", "content": self._prompts.warm_up}]
        return self._client.ask("warm-up", 1, ask, self._stop, max_tokens=1, temperature=0)

    def run(self) -> Iterator[Answer | Sample]:
        """Run the load; gives answers and samples as they come.

        Whoever stops to iterate ends it: what is in flight is dropped.
        """
        plan = self._plan
        work = [partial(self._converse, number) for number in range(plan.sessions)]
        if plan.scrape_s > 0:
            work.append(partial(self._scrape, plan.scrape_s))
        threads = [threading.Thread(target=self._guarded, args=(one,), daemon=True) for one in work]
        for thread in threads:
            thread.start()
        try:
            yield from self._until(plan.sessions)
        finally:
            self._stop.set()
            end = time.monotonic() + _JOIN_S
            for thread in threads:
                thread.join(max(0.0, end - time.monotonic()))

    def _until(self, talks: int) -> Iterator[Answer | Sample]:
        while talks:
            told = self._told.get()
            if isinstance(told, BaseException):
                raise told
            if told is None:
                talks -= 1
            else:
                yield told

    def _guarded(self, work: Callable[[], None]) -> None:
        """Hand what goes wrong in a thread to the one that shows it."""
        try:
            work()
        except Exception as error:
            self._told.put(error)

    def _converse(self, number: int) -> None:
        failures = 0
        history = [{"role": "system", "content": self._prompts.system(number)}]
        for turn in range(self._plan.turns):
            asked = {"role": "user", "content": self._prompts.user(number, turn)}
            answer = self._client.ask(
                f"probe-{number + 1}", turn + 1, [*history, asked], self._stop,
                max_tokens=self._plan.max_tokens, temperature=0, seed=number * self._plan.turns + turn,
            )  # fmt: skip
            if self._stop.is_set():
                return  # cut off by us: no measurement
            self._told.put(answer)
            if answer.text:
                history += [asked, {"role": "assistant", "content": answer.text}]
            failures = 0 if answer.is_answered else failures + 1
            if failures == _MOST_FAILURES or (answer.wait_s and self._stop.wait(answer.wait_s)):
                break
        self._told.put(None)

    def _scrape(self, every_s: float) -> None:
        reader, is_seen = PageReader(replica=REPLICA), False
        while True:
            try:
                samples = reader.read(scrape(f"{self._base}/metrics", _SCRAPE_TIMEOUT_S), self._clock())
            except (RecordError, MissingExtra) as error:
                self.metrics_problem = str(error)
                if not is_seen or isinstance(error, MissingExtra):
                    return
                samples = []
            for sample in samples:
                is_seen = True
                self._told.put(sample)
            if self._stop.wait(every_s):
                return
