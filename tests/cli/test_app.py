"""What becomes of wrong use, of errors, and of a reader who goes away."""

from __future__ import annotations

import builtins
import importlib.abc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stabilitykit import __version__
from stabilitykit.cli import check, health, main

COMMANDS = ("check", "test", "replay", "explain", "rules ls", "rules show", "signals", "warmup", "doctor")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(run, command):
    """--help prints what the command is for and ends with 0."""
    ran = run(*command.split(), "--help")
    assert ran.code == 0
    assert "Usage: stabilitykit" in ran.out
    assert "Traceback" not in ran.err


def test_version(run):
    """--version prints the version."""
    assert run("--version").out.strip() == f"stabilitykit {__version__}"


@pytest.mark.capability("issue 2 §7: exit codes 0, 1, 2 and 3")
@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("replay", "--bogus"), ("explain",), ("replay", "--param", "x"), ("rules", "show")],
)
def test_wrong_use_ends_with_2(run, arguments):
    """Unknown commands, options and missing values are wrong use, said in a line or two."""
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err
    assert "Traceback" not in ran.err


@pytest.mark.capability("issue 2 §7: exit codes 0, 1, 2 and 3")
def test_internal_error_is_one_line(run, monkeypatch):
    """An error of ours ends with 3 and one line; --debug, wherever it stands, adds the traceback."""

    def broken(names):
        raise RuntimeError("of ours")

    monkeypatch.setattr(check, "names_or_shipped", broken)
    ran = run("check")
    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert "RuntimeError" in ran.err
    for arguments in (("--debug", "check"), ("check", "--debug")):
        assert "Traceback" in run(*arguments).err


@pytest.mark.parametrize("absent", ["typer", "rich"])
def test_missing_extra_is_said_clearly(monkeypatch, capsys, absent):
    """Without the packages of the extra the command line says what to install."""
    original = builtins.__import__

    def blocked(name, *args, **kwargs):
        if name == absent:
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", blocked)
    code = main(["doctor"])
    monkeypatch.undo()
    assert code == 2
    assert capsys.readouterr().err == f"stabilitykit: {absent} is not installed: pip install 'stabilitykit[cli]'\n"


def test_reader_that_goes_away_is_no_error(pack, log):
    """A closed pipe ends the command quietly."""
    source = "import sys; from stabilitykit.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", source, "replay", str(log), "--pack", str(pack), "--json"]
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def test_interrupted(run, monkeypatch):
    """Ctrl-C is said in one word, and has the code of shells."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(health, "scrape", stop)
    ran = run("health", "http://127.0.0.1:9")
    assert (ran.code, ran.err) == (130, "stabilitykit: interrupted\n")
    assert "130 interrupted" in run("--help").out


def ended(command, **how):
    """Give exit code and stderr of a command line in a shell of its own."""
    line = f"{sys.executable} -c 'from stabilitykit.cli import main; raise SystemExit(main())' {command}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, **how)
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_no_error_of_ours():
    """One line says so."""
    assert ended("signals > /dev/full") == (2, "stabilitykit: No space left on device\n")


def test_closed_streams():
    """Where nobody listens nothing is said, and nothing breaks."""
    assert ended("rules codes >&-") == (0, "")
    assert ended("rules codes >&- 2>&-") == (0, "")
    assert ended("check nothing.yaml >&-")[0] == 2


def test_interrupted_while_it_loads(monkeypatch, capsys):
    """Ctrl-C before anything has begun is one word too."""
    name = "stabilitykit.cli.app"

    class Loading(importlib.abc.MetaPathFinder):
        def find_spec(self, fullname, path, target=None):
            if fullname == name:
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Loading(), *sys.meta_path])
    assert main(["signals"]) == 130
    assert capsys.readouterr().err == "stabilitykit: interrupted\n"
