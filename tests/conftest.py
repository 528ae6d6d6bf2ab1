"""What every test may use: the shared data, hypothesis' profile, and the record behind docs/status.md."""

from __future__ import annotations

import os
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path

import hypothesis
import pytest

from tests import status
from tests.servers.llamacpp import llama, tiny_gguf  # noqa: F401 - fixtures

ROOT = Path(__file__).resolve().parent.parent

# Shared runners stall; a deadline would test the machine. Reproducible: a found example stays found.
hypothesis.settings.register_profile("repository", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("soak", deadline=None, max_examples=5_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repository"))

_outcomes: dict[str, bool] = {}


@pytest.fixture(scope="session")
def root() -> Path:
    """Give the top folder of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Give the folder of real traces beside the clone; skip with a reason where there is none."""
    folder = Path(os.environ.get("STABILITYKIT_SHARED", ROOT.parent / "shared")) / "data"
    if not folder.is_dir():
        pytest.skip("no shared data: set STABILITYKIT_SHARED or place shared/ beside the clone")
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note how each test with a capability mark ended, all its parameters together."""
    report = yield
    if item.get_closest_marker("capability") and not report.skipped and (report.when == "call" or report.failed):
        test = item.nodeid.partition("[")[0]
        _outcomes[test] = _outcomes.get(test, True) and report.passed
    return report


def pytest_sessionfinish() -> None:
    """Remember on which day each capability was last seen, for `make status`."""
    if _outcomes:
        status.remember(_outcomes, day=datetime.now(UTC).date().isoformat())
