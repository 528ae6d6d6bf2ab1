from __future__ import annotations

import io
import json
import re

import pytest

from stabilitykit.cli import progress
from tests.cli.test_progress import Terminal

TRACE = "".join(f"1 {2 + k % 3} {10 + k % 5}\n" for k in range(40))


@pytest.fixture
def trace(tmp_path):
    """Give a small trace in the plain format."""
    path = tmp_path / "<trace>.txt"
    path.write_text(TRACE)
    return path


@pytest.mark.capability("issue 5 §2: `stabilitykit kv simulate` prints hit ratios by policy and size")
def test_table(run, trace):
    """A row a policy, a column a size; a share counts different blocks; the bound is among all policies."""
    ran = run("kv", "simulate", str(trace), "-s", "50%", "-s", "6")
    assert ran.code == 0
    head, *rows = ran.out.splitlines()
    assert head.split() == ["policy", "4", "6"]
    found = {row.split()[0]: [float(x) for x in re.findall(r"([\d.]+) %", row)] for row in rows}
    assert len(found) == 9
    assert all(one <= bound for row in found.values() for one, bound in zip(row, found["belady"], strict=True))
    assert "40 requests, 120 blocks" in ran.err


def test_json(run, trace):
    """The same as one JSON object; flat counts every block for itself."""
    tree, flat = (
        json.loads(run("kv", "simulate", str(trace), "-p", "lru", "-s", "6", "--json", *more).out)
        for more in ([], ["--flat"])
    )
    assert (tree["requests"], flat["requests"], tree["blocks"], flat["blocks"]) == (40, 120, 120, 120)
    assert tree["results"][0] == {
        "policy": "lru", "capacity": 6, "hits": tree["results"][0]["hits"],
        "hit_ratio": round(tree["results"][0]["hits"] / 120, 6),
    }  # fmt: skip
    assert tree["results"][0]["hits"] > 0


@pytest.mark.capability("issue 5 §2: the report of kv simulate is one HTML file with a plot and no external request")
def test_report(run, trace, tmp_path):
    """A line for each policy, names escaped, nothing fetched."""
    page = tmp_path / "out.html"
    ran = run("kv", "simulate", str(trace), "-p", "lru", "-p", "belady", "-s", "3", "-s", "6", "--report", str(page))
    text = page.read_text()
    assert ran.code == 0
    assert text.count('class="course"') == 2
    assert text.count("stroke-dasharray") == 1
    assert "<h1>&lt;trace&gt;.txt</h1>" in text
    assert not re.search(r"(src|href)=|url\(|@import|<script", text)
    one = run("kv", "simulate", str(trace), "-p", "lru", "-s", "3", "--report", str(page))
    assert (one.code, page.read_text().count('class="course"')) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-p", "mru"], "'mru' is none of"), (["-s", "many"], "'many' is neither"), (["-s", "-3"], "'-3' is neither"),
        (["-s", "1e99%"], "'1e99%' is neither"), (["--report", "/no/such/place.html"], "no directory"),
    ],
)  # fmt: skip
def test_wrong_use(run, trace, arguments, told):
    """Exit code 2, and what is wrong with what."""
    ran = run("kv", "simulate", str(trace), *arguments)
    assert ran.code == 2
    assert told in ran.err


def test_bad_trace(run, tmp_path):
    """A file that is no trace: exit code 2 with the line."""
    path = tmp_path / "t"
    path.write_text("1 2\nx\n")
    ran = run("kv", "simulate", str(path))
    assert ran.code == 2
    assert f"{path}:2: neither" in ran.err


@pytest.mark.capability("issue 5 §2: kv simulate shows a progress bar, on a terminal only")
@pytest.mark.parametrize("is_terminal", [True, False])
def test_bar(monkeypatch, is_terminal):
    """Something is drawn on stderr exactly when it is a terminal."""
    stream = Terminal() if is_terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm-256color")
    with progress.counting(10, "simulating") as advance:
        for _ in range(10):
            advance(1)
    assert ("simulating" in stream.getvalue()) == is_terminal
