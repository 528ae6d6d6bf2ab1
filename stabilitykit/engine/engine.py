"""The engine: a Turn in, a Decision out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stabilitykit.compiled import header as c
from stabilitykit.compiled.program import Program, build_program
from stabilitykit.decision import Decision, Fault
from stabilitykit.engine.admission import Admission
from stabilitykit.engine.door import Door
from stabilitykit.engine.forks import watch_forks
from stabilitykit.engine.generation import Generation
from stabilitykit.engine.identity import check_id
from stabilitykit.engine.journal import Journal
from stabilitykit.engine.migrate import MigrationReport, plan_migration
from stabilitykit.engine.observing import Scopes
from stabilitykit.engine.stepping import RARE, Stepping
from stabilitykit.engine.transfer import export_session, restore_session
from stabilitykit.errors import TurnError, UsageError
from stabilitykit.rules.pack import Pack
from stabilitykit.session import Instance, Session, SessionStore
from stabilitykit.turn import MISSING, Turn

if TYPE_CHECKING:
    from stabilitykit.engine.columns import Replayed

__all__ = ["Engine"]

_NO_FAULTS: Sequence[Fault] = ()
_FIRST = 0
_KEEP_GENERATIONS = 4


class Engine:
    """Evaluates turns of conversations against a pack.

    Build one with `Engine.load`; share it between threads; fork after it was loaded.

    Examples
    --------
    >>> from stabilitykit import Engine, Turn
    >>> engine = Engine.load("chat")
    >>> engine.evaluate(Turn(session_id="c-1", ttft_ms=300.0, itl_ms=30.0, input_tokens=900)).state
    'healthy'
    """

    def __init__(
        self,
        program: Program,
        *,
        capacity: int = 100_000,
        ttl_s: float | None = 3600.0,
        clock: Callable[[], float] = time.monotonic,
        sample_ttl_s: float | None = 60.0,
        snapshots: int = 0,
        compiled: bool | None = None,
        log_key: bytes | None = None,
        limits: tuple[int, int] = (16384, 65536),
    ) -> None:
        if not isinstance(program, Program):
            raise UsageError(f"build an engine with Engine.load({program!r:.40})")
        self._live = Generation(program, 1, compiled)
        self._compiled = compiled
        self._limits = limits
        self._clock = clock
        self._ttl = float("inf") if ttl_s is None else ttl_s
        self._journal = Journal(log_key or secrets.token_bytes(16))
        self._events, self._door = self._journal.waiting, Door(self._journal)
        self._lock = self._door.lock
        self._functions: dict[str, Callable[[Turn], Any]] = {}
        self.sessions = SessionStore(capacity, ttl_s, clock, self._journal.dropped)
        self._scopes = Scopes(sample_ttl_s)
        self._admission = Admission(self.sessions, snapshots)
        self._stepping = Stepping(self.sessions, self._admission, self._scopes, self._journal, self._functions)
        self._find, self._touch = self.sessions.live.get, self.sessions.live.move_to_end
        self._find_kept, self._touch_kept = self.sessions.kept.get, self.sessions.kept.move_to_end
        self._set_narrow()
        watch_forks(self)

    @classmethod
    def load(
        cls,
        sources: str | Sequence[str],
        *,
        params: Mapping[str, Any] | None = None,
        row_limit: int = 16384,
        vector_limit: int = 65536,
        capacity: int = 100_000,
        ttl_s: float | None = 3600.0,
        clock: Callable[[], float] = time.monotonic,
        sample_ttl_s: float | None = 60.0,
        snapshots: int = 0,
        compiled: bool | None = None,
        log_key: bytes | None = None,
    ) -> Engine:
        """Load a pack and build an engine for it.

        Parameters
        ----------
        sources
            A shipped pack's name, a path, or a list of them.
        params
            Values of the pack's params.
        row_limit, vector_limit
            Most bytes one session's row and vectors may take.
        capacity, ttl_s, clock
            Most sessions held, seconds of silence after which one is forgotten, and what measures them.
        sample_ttl_s
            Age after which a stored sample of a replica or device no longer counts (None: it always does).
        snapshots
            Turns of each session kept for ``fork(at_turn=)``.
        compiled, log_key
            False: plain Python instead of machine code. Bytes that hash identities in logs (None: new ones).

        Raises
        ------
        PackError
            With every located problem of the files.
        """
        program = build_program(_load(sources, params), row_limit=row_limit, vector_limit=vector_limit)
        return cls(
            program, capacity=capacity, ttl_s=ttl_s, clock=clock, sample_ttl_s=sample_ttl_s, snapshots=snapshots,
            compiled=compiled, log_key=log_key, limits=(row_limit, vector_limit),
        )  # fmt: skip

    @property
    def pack(self) -> Pack:
        """The pack that decides now."""
        return self._live.pack

    @property
    def is_compiled(self) -> bool:
        """True when turns run as machine code, False when as plain Python."""
        return self._live.is_compiled

    def evaluate(self, turn: Turn) -> Decision:
        """Take one turn in and decide.

        Never raises because of telemetry: bad values are in ``decision.faults``.

        Raises
        ------
        TurnError, UnknownSignal
            Not exactly a Turn; an id that can never work; an ``extra`` the pack does not declare. Nothing has changed.
        """
        if type(turn) is not Turn:
            raise TurnError(f"evaluate takes exactly a Turn, not {type(turn).__name__}")
        if self._functions:  # the host's own code will run inside
            return self._asking(turn)
        lock = self._lock
        lock.acquire()  # `with` takes twice as long
        try:
            live = self._live
            try:
                key = (turn.tenant, turn.session_id)
                session = self._find(key) or self._find_kept(key)
            except Exception:  # an id that is no id: the long way says so
                session = None
            now = self._clock()
            turn_id = turn.turn_id
            if (
                session is None
                or (turn_id is not None and (turn_id.__class__ is not int or turn_id != session.last + 1))
                or turn.revision is not _FIRST
                or session.rows is not live.rows[0]
                or now - session.seen > self._ttl
                or (turn.model is not session.model and turn.model is not None)
                or turn.applied is not None
                or turn.extra is not None
            ):
                return self._stepping.unusual(live, turn)
            replica, device, flags, faults = place = self._scopes.place(live, turn) if live.is_wide else self._narrow
            (self._touch_kept if session.kept else self._touch)(session.key)
            session.seen = now
            if faults or (live.array_names and live.bring_arrays(live.read_arrays(turn), session)):
                return self._stepping.step(live, turn, session, *place[:3], 0, None, faults)
            try:  # every line runs on every turn: nothing is moved into a method
                row, vec = session.row, session.vec_at
                live.pack_turn(turn, row, vec, replica.row, replica.vec_at, device.row, device.vec_at, flags, 0)
            except Exception:  # a strange value: the long way finds and names it
                return self._stepping.step(live, turn, session, *place[:3], 0, None, faults)
            code = live.call(live.address)
            if code & RARE or session.past is not None:
                return self._stepping.taken(live, turn, session, replica, device, code, faults)
            session.last = turn_id = session.last + 1 or 1
            session.revision = _FIRST
            session.said_model = turn.model
            memory = live.shown_memory() if code & c.B_MATCHED else b""
            fields = (live, turn.session_id, turn_id, code, live.snapshot(), (), memory, "session", turn.tenant)
            session.decision = decision = Decision(fields)
            return decision
        finally:
            lock.release()
            if self._events:
                self._journal.flush()

    def _asking(self, turn: Turn) -> Decision:
        with self._door:
            return self._stepping.unusual(self._live, turn)

    def observe(
        self,
        *,
        replica: str | None = None,
        device: str | None = None,
        tenant: str = "",
        timestamp_s: float = MISSING,
        **signals: Any,
    ) -> Decision:
        """Take one sample of a replica or a device in: a scrape, a GPU reading.

        The names say whose sample it is; with signals of both the device moves first, and the
        answer is the replica's with what fired in either.

        Raises
        ------
        UsageError
            A name that is no replica or device signal; nothing has changed.
        """
        with self._door:
            live = self._live
            check_id(tenant, "tenant")
            scopes = self._scopes.sampled(live, replica, device, signals)
            return self._scopes.observe(live, scopes, (tenant, replica, device), timestamp_s, signals, self._journal)

    def peek(self, turn: Turn) -> Decision:
        """Tell what ``evaluate`` would decide; nothing is stored.

        Raises
        ------
        TurnError
            As ``evaluate``.
        """
        if turn.__class__ is not Turn:
            raise TurnError(f"peek takes exactly a Turn, not {type(turn).__name__}")
        with self._door:
            return self._stepping.unusual(self._live, turn, is_peek=True)

    def replay(
        self, columns: Mapping[str, Any], *, session: Any = "replay", turn: Any = None, replica: Any = None,
        device: Any = None, tenant: str = "",
    ) -> Replayed:  # fmt: skip
        """Take many turns in at once, from arrays: decides as ``evaluate`` does, at a fraction of its cost.

        Nothing is logged, faults are not collected, and other threads wait until the end.

        Parameters
        ----------
        columns
            Scalar signals and times by name, in the order of time; NaN is not measured.
        session, replica, device
            One name, or one for each turn.
        turn
            Increasing turn ids for each session; None issues them.

        Raises
        ------
        UsageError
            Array signals, late turns, columns of different length; nothing has changed.
        """
        from stabilitykit.engine.columns import replay_columns

        with self._door:
            return replay_columns(self, columns, session, turn, replica, device, tenant)

    def warmup(self) -> bool:
        """Do now what the first turn would do once: first touches of memory, imports of explanations.

        Loading has compiled the pass already. Call it before forking workers or taking traffic.

        Returns
        -------
        bool
            True when turns run as machine code.
        """
        self.peek(Turn(session_id="warm-up")).explain()
        return self._live.is_compiled

    def fork(self, session_id: Any, new_session: Any, *, at_turn: int | None = None, tenant: Any = "") -> None:
        """Start a session as a copy of another: a chat that was edited or branched.

        Parameters
        ----------
        at_turn
            Copy the memory as it was after that turn; needs ``Engine.load(snapshots=n)``.

        Raises
        ------
        UsageError
            No such session, the new one exists, or that turn is not kept any more.
        """
        key = _key(tenant, new_session)
        with self._door:
            source = self._found(tenant, session_id)
            if self.sessions.find(key) is not None:
                raise UsageError("the new session exists already")
            self.sessions.add(self._admission.branch(source, key, at_turn))

    def forget(self, session_id: Any, *, tenant: Any = "") -> bool:
        """Drop a session's memory; tells whether there was one."""
        with self._door:
            return self.sessions.remove(_key(tenant, session_id))

    def export(self, session_id: Any, *, tenant: Any = "") -> bytes:
        """Give one session as a blob for ``restore``.

        Raises
        ------
        UsageError
            No such session.
        """
        with self._door:
            return export_session(self._found(tenant, session_id), self._live)

    def restore(self, blob: bytes) -> Any:
        """Bring an exported session in, replacing one of the same name; gives its id.

        Restore only what a store of your own kept: like a pickle's, its memory is taken as it is.

        Raises
        ------
        BlobError
            Damaged, newer, or of another pack; nothing has changed.
        """
        with self._door:
            session = restore_session(blob, self._live)
            self.sessions.remove(session.key)
            session.kept = session.decision is not None and self._live.keeps(session.decision._code & 255)
            session.past = self._admission.memory_of_past()
            self.sessions.add(session)
            return session.key[1]

    def signal(self, name: str) -> Callable[[Callable[[Turn], Any]], Callable[[Turn], Any]]:
        """Register a function of the Turn as the producer of a declared signal.

        It is asked when the turn itself does not bring the signal; what it raises becomes a fault.
        It runs within the turn, under the engine's lock: it must be quick and never call the engine.
        """
        if name not in self._live.pack.signals:
            raise UsageError(f"the pack declares no signal {name!r}")

        def register(fn: Callable[[Turn], Any]) -> Callable[[Turn], Any]:
            with self._door:
                self._functions[name] = fn
            return fn

        return register

    def reload(self, sources: str | Sequence[str], *, params: Mapping[str, Any] | None = None) -> MigrationReport:
        """Swap the pack; sessions keep the memory that has the same name in both packs.

        Raises PackError or ReloadRefused when the new pack is bad or would lose a state; the old one stays.
        """
        program = build_program(_load(sources, params), row_limit=self._limits[0], vector_limit=self._limits[1])
        fresh = Generation(program, 0, self._compiled)
        with self._door:
            steps, report = plan_migration(self._live.program, program)
            fresh.follow(self._live, steps)
            if fresh.depth > _KEEP_GENERATIONS:
                for session in (*self.sessions.live.values(), *self.sessions.kept.values()):
                    self._admission.bring_up(fresh, session)
                for scope in (1, 2):
                    for instance in self._scopes.held[scope].values():
                        fresh.migrate(instance, scope)
                fresh.origin = None
            self._live = fresh
            self._set_narrow()
            return MigrationReport(report.kept, report.started, report.dropped, fresh.number)

    def _found(self, tenant: Any, session_id: Any) -> Session:
        session = self.sessions.find(_key(tenant, session_id))
        if session is None:
            raise UsageError("no such session")
        self._admission.bring_up(self._live, session)
        return session

    # -- one step

    def _set_narrow(self) -> None:
        """Say what ``Scopes.place`` would say of a pack that has nothing of the wider scopes."""
        idle = self._scopes.idle(self._live)
        self._narrow: tuple[Instance, Instance, int, Sequence[Fault]] = (idle, idle, c.F_TURN, ())


def _key(tenant: Any, session_id: Any) -> tuple[Any, Any]:
    check_id(tenant, "tenant")
    check_id(session_id, "session_id")
    return tenant, session_id


def _load(sources: str | Sequence[str], params: Mapping[str, Any] | None) -> Pack:
    from stabilitykit.detectors import DETECTORS
    from stabilitykit.rules.load import load_pack

    return load_pack(sources, params=params, detectors=DETECTORS)
