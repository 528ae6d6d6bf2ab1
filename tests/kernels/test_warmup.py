from __future__ import annotations

import logging
import os
import signal
import threading

import pytest

from stabilitykit.kernels import compile as compiling
from stabilitykit.kernels import report as reporting
from stabilitykit.kernels.compile import compile_detector
from stabilitykit.kernels.warmup import warm_up
from tests.kernels.sample_pass import KINDS, Memory, drift, sample_pass, weigh

pytestmark = pytest.mark.usefixtures("forgetful", "cache_dir")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


def in_child(check) -> int:
    """Run a check in a forked child and give its exit status, 0 when it held; a hang is killed."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        ok = False
        try:
            ok = check()
        finally:
            os._exit(0 if ok else 1)
    return os.waitpid(pid, 0)[1]


def answers(warm) -> bool:
    """Tell whether compiled code agrees with the plain functions."""
    plain, fast = Memory([0.5]), Memory([0.5])
    return plain.run_plain(2.0) == fast.run_compiled(2.0, warm.entry, warm.addresses) and plain.image() == fast.image()


@needs_fork
def test_fifty_forks():
    """Children of a warm process use its code."""
    warm = warm_up(sample_pass, KINDS, [drift, weigh])
    assert warm
    assert [in_child(lambda: answers(warm)) for _ in range(50)] == [0] * 50


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_fork_while_another_thread_compiles(monkeypatch):
    """The fork waits for the compiler, so the child can compile as well."""
    started, build = threading.Event(), compiling._detector_image

    def announce(fn):
        started.set()
        return build(fn)

    monkeypatch.setattr(compiling, "_detector_image", announce)
    thread = threading.Thread(target=compile_detector, args=(drift,))
    thread.start()
    started.wait()
    status = in_child(lambda: drift in compiling._DETECTORS and compile_detector(weigh).address != 0)
    thread.join()
    assert status == 0


def test_threads_compile_once(monkeypatch):
    """Eight threads that ask at once get one compile and the same code."""
    built, build = [], compiling._detector_image

    def count(fn):
        built.append(threading.get_ident())
        return build(fn)

    monkeypatch.setattr(compiling, "_detector_image", count)
    barrier, found = threading.Barrier(8), []

    def ask():
        barrier.wait()
        found.append((threading.get_ident(), compile_detector(drift)))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(code) for _, code in found}) == 1
    assert len(built) == 1
    assert built[0] in [asker for asker, _ in found]


def test_without_a_compiler(monkeypatch, caplog):
    """No compiler or a broken one: None, so that the engine takes the plain functions; a broken one warns, once."""
    caplog.set_level(logging.DEBUG, "stabilitykit.kernels")
    monkeypatch.setattr(reporting, "_warned", set())
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert warm_up(sample_pass, KINDS, [drift]) is None
    assert [r.levelname for r in caplog.records if r.levelno >= logging.WARNING] == []
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    monkeypatch.setattr(compiling, "_entry_image", lambda fn, kinds: 1 / 0)
    for _ in range(2):
        assert warm_up(sample_pass, KINDS, [drift]) is None
    seen = [(r.levelname, r.getMessage()) for r in caplog.records if "compile_failed" in r.getMessage()]
    assert seen == [("WARNING", "compile_failed"), ("DEBUG", "compile_failed")]
    assert [r.reason for r in caplog.records if r.levelno == logging.WARNING] == ["ZeroDivisionError"]
