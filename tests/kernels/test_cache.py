from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from stabilitykit.kernels import cache
from stabilitykit.kernels import compile as compiling
from stabilitykit.kernels.cache import Store, cache_directory, open_store
from stabilitykit.kernels.compile import compile_detector
from stabilitykit.kernels.image import Image
from tests.kernels.sample_pass import drift

pytestmark = pytest.mark.usefixtures("forgetful")
KEY = "0" * 64


@pytest.fixture
def built(monkeypatch):
    """Count what is compiled, and compile it once for all tests of this module."""
    keys = []

    def build(fn):
        keys.append(fn.__name__)
        if fn not in IMAGES:
            IMAGES[fn] = BUILD(fn)
        return IMAGES[fn]

    monkeypatch.setattr(compiling, "_detector_image", build)
    return keys


BUILD = compiling._detector_image
IMAGES: dict[Callable[..., object], Image] = {}


def use() -> bool:
    """Compile a detector as a fresh process would, and tell whether it was loaded."""
    compiling._DETECTORS.clear()
    return compile_detector(drift).address != 0


def only_file(folder: Path) -> Path:
    """Give the one file of a cache directory."""
    (file,) = folder.iterdir()
    return file


def test_saved_and_found(cache_dir, built):
    """The second use loads the file of the first; directory and file are private."""
    assert use()
    assert use()
    assert built == ["drift"]
    assert cache_dir.stat().st_mode & 0o777 == 0o700
    assert only_file(cache_dir).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("given", ["STABILITYKIT_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_where(given, tmp_path, monkeypatch):
    """The variable comes first, then the platform's cache directory, then the home directory."""
    for name in ("STABILITYKIT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(given, str(tmp_path))
    inside = {"STABILITYKIT_CACHE_DIR": "", "XDG_CACHE_HOME": "stabilitykit", "HOME": ".cache/stabilitykit"}
    assert cache_directory() == tmp_path / inside[given]


@pytest.mark.capability(
    "issue 2 §6: a corrupted cache (every truncation, 200 bit flips) leads to a new compile, never to an exception"
)
def test_every_truncation_is_absent(cache_dir):
    """A file cut at any length is as if it were not there."""
    store = open_store()
    assert store
    store.save(KEY, b"payload" * 40)
    whole = only_file(cache_dir).read_bytes()
    for length in range(len(whole)):
        only_file(cache_dir).write_bytes(whole[:length])
        assert store.load(KEY) is None
    only_file(cache_dir).write_bytes(whole)
    assert store.load(KEY) == b"payload" * 40


@pytest.mark.capability(
    "issue 2 §6: a corrupted cache (every truncation, 200 bit flips) leads to a new compile, never to an exception"
)
def test_damage_is_compiled_away(cache_dir, built):
    """Any of 200 flipped bits and of the lengths tried leads to a new compile and a whole file."""
    use()
    file = only_file(cache_dir)
    whole = file.read_bytes()
    chance = random.Random(1)
    damaged = [whole[:n] for n in range(0, len(whole), 97)] + [whole + b"\0"]
    for bit in chance.sample(range(8 * len(whole)), 200):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(flipped))
    for wrong in damaged:
        file.write_bytes(wrong)
        assert use()
        assert file.read_bytes() == whole
    assert len(built) == 1 + len(damaged)


@pytest.mark.capability("issue 2 §6: a tampered or foreign cache is never run")
def test_file_of_another_function_is_refused(cache_dir):
    """A whole file under another name does not pass its check."""
    store = open_store()
    assert store
    store.save(KEY, b"payload")
    only_file(cache_dir).rename(cache_dir / f"{'1' * 64}.code")
    assert store.load("1" * 64) is None


class Planted:
    """A pickle that would make a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (os.mkdir, (str(self.marker),))


@pytest.mark.capability("issue 2 §6: a tampered or foreign cache is never run")
def test_planted_pickle_is_never_run(cache_dir, built, tmp_path):
    """A pickle in place of the file does nothing, not even behind a right checksum."""
    use()
    file = only_file(cache_dir)
    blob = pickle.dumps(Planted(tmp_path / "marker"))
    file.write_bytes(blob)
    assert use()
    Store(cache_dir).save(file.stem, blob)
    assert use()
    assert built == ["drift"] * 3
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("change", [{"symbol": "absent"}, {"needs": ("no_such_name_anywhere",)}])
def test_checked_file_that_cannot_be_linked(change, cache_dir, built):
    """Code that this process cannot link is compiled again instead of aborting the process."""
    use()
    file = only_file(cache_dir)
    Store(cache_dir).save(file.stem, attrs.evolve(IMAGES[drift], **change).to_bytes())
    assert use()
    assert built == ["drift"] * 2


@pytest.mark.parametrize("blob", [b"", b"\0\0\0\0", b"\2\0\0\0{}", b"\2\0\0\0[]", b"\1\0\0\0\xff"])
def test_checked_file_of_another_form(blob, cache_dir, built):
    """A payload that is no image is compiled away, even behind a right checksum."""
    use()
    Store(cache_dir).save(only_file(cache_dir).stem, blob)
    assert use()
    assert built == ["drift"] * 2


def refuse_file(folder):
    """Put a file where the directory should be."""
    folder.write_text("")


def refuse_writable(folder):
    """Let the group write the directory."""
    folder.mkdir()
    folder.chmod(0o770)


def refuse_symlink(folder):
    """Make the directory a link to a good one."""
    (folder.parent / "real").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "real")


def refuse_foreign(folder):
    """Give the directory to another user."""
    folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(folder, 12345, 12345)


@pytest.mark.capability("issue 2 §6: an unwritable cache costs a compile and nothing else")
@pytest.mark.parametrize("spoil", [refuse_file, refuse_writable, refuse_symlink, refuse_foreign])
def test_unsafe_directory(spoil, cache_dir, built, monkeypatch, capfd):
    """No safe place: compiled in memory, nothing written, nothing printed."""
    spoil(cache_dir)
    if spoil is refuse_foreign and os.geteuid() != 0:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert open_store() is None
    assert use()
    assert built == ["drift"]
    assert not cache_dir.is_dir() or not list(cache_dir.iterdir())
    assert capfd.readouterr() == ("", "")


def spoil_mode(file):
    """Let everybody write the file."""
    file.chmod(0o602)


def spoil_link(file):
    """Make the file a link to its own content."""
    file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def spoil_pipe(file):
    """Make the file a pipe that nobody writes."""
    file.unlink()
    os.mkfifo(file, 0o600)


@pytest.mark.capability("issue 2 §6: a tampered or foreign cache is never run")
@pytest.mark.parametrize("spoil", [spoil_mode, spoil_link, spoil_pipe])
def test_unsafe_file(spoil, cache_dir, built):
    """A file that another could have written is replaced by a private one."""
    use()
    file = only_file(cache_dir)
    spoil(file)
    assert use()
    assert built == ["drift"] * 2
    assert not file.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o600
    assert use()
    assert built == ["drift"] * 2


def test_huge_file(cache_dir, built, monkeypatch):
    """A file far larger than code ever is is not read."""
    use()
    monkeypatch.setattr(cache, "_LARGEST", 1000)
    assert use()
    assert built == ["drift"] * 2


def test_no_home(monkeypatch):
    """A user without a home directory has no cache."""
    for name in ("STABILITYKIT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert open_store() is None


@pytest.mark.capability("issue 2 §6: an unwritable cache costs a compile and nothing else")
def test_full_disk(cache_dir, built, monkeypatch):
    """A write that fails leaves no file behind and no exception."""

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    assert use()
    assert not list(cache_dir.iterdir())


def test_platform_without_owners(cache_dir, monkeypatch):
    """Where ownership cannot be checked there is no cache."""
    monkeypatch.delattr(os, "geteuid")
    assert open_store() is None
    assert not cache_dir.exists()


def test_refusal_is_one_debug_event(cache_dir, caplog):
    """Whoever asks for debug events learns why there is no cache, without a path."""
    refuse_file(cache_dir)
    with caplog.at_level("DEBUG", logger="stabilitykit.kernels"):
        assert open_store() is None
    (record,) = caplog.records
    assert record.msg == "compile_cache_refused"
    assert str(cache_dir) not in caplog.text
