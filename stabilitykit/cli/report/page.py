"""A report collects what it needs while a replay runs, and becomes a page at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from stabilitykit import __version__
from stabilitykit.cli.report.chart import Chart, draw
from stabilitykit.cli.report.episodes import Episodes
from stabilitykit.cli.report.series import Track
from stabilitykit.cli.timeline import label
from stabilitykit.cli.tones import tones
from stabilitykit.decision import Decision
from stabilitykit.engine.replay import Step
from stabilitykit.rules.pack import Pack
from stabilitykit.signals import SCOPES

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["Report", "Section"]

_CHARTS = 24
_ROWS = 1000
_NAME = 160


@attrs.frozen
class Section:
    """A section beside those of a replay.

    Parameters
    ----------
    title, text
        Heading, and what is to be seen.
    svg
        A drawing without any foreign text, put into the page as it is; "" for none.
    head, rows
        A table; empty for none.
    """

    title: str
    text: str
    svg: str = ""
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@attrs.frozen
class _Drawn:
    """A conversation with its chart."""

    track: Track
    chart: Chart
    anchor: str


class Report:
    """Everything a page will show of a replay.

    Parameters
    ----------
    pack
        The pack that decides.
    """

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._states = [s.name for s in pack.states]
        self._tracks: dict[tuple[str, object], Track] = {}
        self._steps: Counter[str] = Counter()
        self._episodes = Episodes(_ROWS)
        self._matched = 0
        self._faults: Counter[tuple[str, str, str]] = Counter()
        self._fired: Counter[str] = Counter()

    def add(self, step: Step) -> None:
        """Remember one step."""
        decision = step.decision
        state = self._states.index(decision.state)
        self._steps[decision.scope] += 1
        track = self._track(decision)
        track.add(step.entry, decision, state)
        self._episodes.add(decision, track.at[-1], state)
        for fault in decision.faults:
            self._faults[label(decision.session_id), fault.kind, fault.signal] += 1
        for match in decision.matches:
            self._fired[match.rule] += match.fired and match.scope == decision.scope
            self._matched += match.scope == decision.scope

    def _track(self, decision: Decision) -> Track:
        key = (decision.scope, decision.session_id)
        track = self._tracks.get(key)
        if track is None:
            track = self._tracks[key] = Track(_name(decision.session_id), decision.scope)
        return track

    def _drawn(self, scope: str) -> tuple[list[_Drawn], int]:
        """Draw the tracks of a scope that got into the worst states; gives also how many are left out."""
        mine = [track for track in self._tracks.values() if track.scope == scope]
        if scope != "session" and not any(rule.scope == scope for rule in self._pack.rules):
            return [], 0
        ranked = sorted(mine, key=lambda t: (-t.worst, -len(t.fired), -len(t.at)))[:_CHARTS]
        chosen = {id(track) for track in ranked}
        tracks = [track for track in mine if id(track) in chosen]
        return [_Drawn(t, draw(t, self._states), f"{scope}{k}") for k, t in enumerate(tracks)], len(mine) - len(tracks)

    def render(self, paths: Sequence[Path], bad_lines: int, sections: Sequence[Section] = ()) -> str:
        """Write the page; further sections stand before the conversations."""
        drawn = {scope: self._drawn(scope) for scope in SCOPES}
        sessions = [track for track in self._tracks.values() if track.scope == "session"]
        return _template().render(
            title=", ".join(path.name for path in paths),
            pack=self._pack,
            states=self._states,
            tones=list(tones(self._pack).values()),
            drawn=drawn,
            rows=self._episodes.rows,
            row_count=self._episodes.count,
            matched=self._matched,
            faults=self._faults.most_common(200),
            fired=[(self._pack.rule(rule), count) for rule, count in self._fired.most_common() if count],
            turns=self._steps["session"],
            samples=self._steps["replica"] + self._steps["device"],
            sessions=len(sessions),
            worst=max((t.worst for t in sessions), default=0),
            bad_lines=bad_lines,
            sections=sections,
            version=__version__,
        )


def _name(session_id: object) -> str:
    text = session_id.hex() if isinstance(session_id, bytes) else str(session_id)
    return text if len(text) <= _NAME else text[: _NAME - 1] + "…"


@cache
def _template() -> Template:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    source = Path(__file__).with_name("page.html.j2").read_text(encoding="utf-8")
    environment: Any = ImmutableSandboxedEnvironment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template: Template = environment.from_string(source)
    return template
