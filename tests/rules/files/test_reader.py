"""Strict YAML: what is read, what is refused, and where."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stabilitykit.errors import PackError, Problem
from stabilitykit.rules.files.reader import Mark, read


def problems(source: str | bytes) -> list[tuple[str, int, int]]:
    """Read a bad file: code, line and column of everything found."""
    with pytest.raises(PackError) as caught:
        read(source.encode() if isinstance(source, str) else source, "bad.yaml")
    return [(p.code, p.line, p.col) for p in caught.value.problems]


def test_values():
    """Plain dicts, lists and scalars come out."""
    source = b"""
a: 1
b: [x, {c: "q\\u0041", d: 5 ms}]
e: >
  two
  lines
f: |
  kept
  # too
g:
h: {y: 1.5, n: ~}
'no': 'no'
"""
    assert read(source, "f").root == {
        "a": 1,
        "b": ["x", {"c": "qA", "d": "5 ms"}],
        "e": "two lines\n",
        "f": "kept\n# too\n",
        "g": None,
        "h": {"y": 1.5, "n": None},
        "no": "no",
    }


@pytest.mark.parametrize(
    "source", ["a: 1", "- 1", "word", "'no'", "~", "%YAML 1.2\n---\na: 1\n...\n", "a: 1\r\nb: 2\r\n"]
)
def test_every_kind_of_root(source):
    """A file may hold any one value."""
    assert read(source.encode(), "f").root == yaml.safe_load(source)


@pytest.mark.capability("issue 2 §3: the strict reader: every mistake of YAML has its code and place")
@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("", [("SK101", 1, 1)]),
        ("# only a comment\n", [("SK101", 1, 1)]),
        ("a: b: c", [("SK101", 1, 5)]),
        ("a: [1, 2", [("SK101", 1, 9)]),
        ("a: 1\n\tb: 2", [("SK101", 2, 1)]),
        ("a: 'open", [("SK101", 1, 9)]),
        (b"a: \xff", [("SK102", 1, 4)]),
        (b"a: 1\nb: \xc3\xa9\xff", [("SK102", 2, 5)]),
        (b"\xef\xbb\xbfa: 1", [("SK102", 1, 1)]),
        ("a: 1".encode("utf-16"), [("SK102", 1, 1)]),
        ("a: 1".encode("utf-16-le"), [("SK102", 1, 1)]),
        ("a: 1".encode("utf-32-be"), [("SK102", 1, 1)]),
        ("a: x\x00", [("SK102", 1, 5)]),
        ("a: x\nbc: \u202ey\u2066", [("SK102", 2, 5), ("SK102", 2, 7)]),
        ("a: x\x7f", [("SK102", 1, 5)]),
        ("a: x\x85", [("SK102", 1, 5)]),
        ("a: x\u2028", [("SK102", 1, 5)]),
        ("a: \ufeffx", [("SK102", 1, 4)]),
        ("a: \U000e0041x", [("SK102", 1, 4)]),
        ('a: "\\u202e"', [("SK102", 1, 4)]),
        ('"\\0": 1', [("SK102", 1, 1)]),
        ("a: 1\na: 2\nb: 1\n'a': 3", [("SK103", 2, 1), ("SK103", 4, 1)]),
        ("r:\n- {x: 1, x: 2}", [("SK103", 2, 10)]),
        ("a: &x 1\nb: *x", [("SK104", 1, 4), ("SK104", 2, 4)]),
        ("a: &x\n  b: *x", [("SK104", 1, 4), ("SK104", 2, 6)]),
        ("*x : 1", [("SK104", 1, 1)]),
        ("- *x", [("SK104", 1, 3)]),
        ("*x", [("SK104", 1, 1)]),
        ("a: !!python/name:os.system x", [("SK104", 1, 4)]),
        ("a: !t [1]", [("SK104", 1, 4)]),
        ("a: ! x", [("SK104", 1, 4)]),
        ("a: !e!x 1", [("SK104", 1, 4)]),
        ("%TAG !e! tag:x,2000:\n---\na: 1", [("SK104", 1, 1)]),
        ("b: {x: 1}\na:\n  <<: {y: 2}", [("SK104", 3, 3)]),
        ("a: 1\n---\nb: 2", [("SK104", 2, 1)]),
        (
            "a: no\nb: 010\nc: 12:30\nd: [2024-01-02]",
            [("SK105", 1, 4), ("SK105", 2, 4), ("SK105", 3, 4), ("SK105", 4, 5)],
        ),
        ("no: 1\n1: 2\n~: 3", [("SK105", 1, 1), ("SK105", 2, 1), ("SK105", 3, 1)]),
        ("a: 1e999\nb: 9223372036854775808\nc: .nan", [("SK106", 1, 4), ("SK106", 2, 4), ("SK106", 3, 4)]),
        ("a: " + "x" * 16_385, [("SK107", 1, 4)]),
        ("a: " + "é" * 8_193, [("SK107", 1, 4)]),
        ("a: {{ itl_ms }}", [("SK203", 1, 5)]),
        ("? [a]\n: 1", [("SK203", 1, 3)]),
        ("[" * 33, [("SK107", 1, 33)]),
        ("- " * 33 + "x", [("SK107", 1, 65)]),
    ],
)
def test_refused(source, found):
    """Every mistake has its code and its place, all of a file together."""
    assert problems(source) == found


def test_limits_are_inclusive():
    """32 levels, 16 KiB of text and a megabyte are allowed."""
    assert read(("[" * 32 + "]" * 32).encode(), "f").root is not None
    assert len(read(("a: " + "x" * 16_384).encode(), "f").root["a"]) == 16_384
    assert read(b"a: 1\n" + b"#" * ((1 << 20) - 5), "f").root == {"a": 1}
    assert problems(b"#" * ((1 << 20) + 1)) == [("SK107", 1, 1)]
    assert problems("[" + "1," * 100_000 + "]") == [("SK107", 1, 200_000)]


def test_at_most_fifty():
    """A file of nothing but mistakes reports fifty."""
    assert len(problems("\n".join(f"k{i}: no" for i in range(80)))) == 50
    assert len(problems("\x01" * 80)) == 50


def test_message_of_a_duplicate():
    """The message names the first, shows the line and a caret under the spot."""
    with pytest.raises(PackError) as caught:
        read(b"rules: 1\nwhen: x\nrules: 2\n", "my.yaml")
    assert str(caught.value) == ("my.yaml:3:1: SK103 duplicate key `rules`, first in line 1\n    rules: 2\n    ^^^^^")


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("a: no", 'quote it: "no"'),
        ("a: b: c", "quote a text that contains `: `"),
        ("a: {{ x }}", "begins with `{`"),
        ("a: 1\n\tb: 2", "indent with spaces"),
        ("x: 1\n<<: {a: 1}", "`extends`"),
    ],
)
def test_hints(source, hint):
    """Usual slips come with their repair."""
    with pytest.raises(PackError) as caught:
        read(source.encode(), "f")
    assert hint in caught.value.problems[0].hint


def _laughs() -> str:
    first = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    return first + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(20))


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(_laughs(), id="billion laughs"),
        pytest.param("[" * (1 << 20), id="brackets"),
        pytest.param("{a: " * (1 << 18), id="maps"),
        pytest.param("- " * (1 << 19), id="dashes"),
        pytest.param("? " * (1 << 19), id="question marks"),
        pytest.param("a: " + "x" * 1_000_000, id="huge scalar"),
        pytest.param("a: " + "9" * 1_000_000, id="huge number"),
        pytest.param("x" * 1_000_000 + ": 1", id="huge key"),
        pytest.param("".join(f"k{i}: 1\n" for i in range(100_000))[: 1 << 20] + "\nlast: no", id="100k keys"),
        pytest.param("a: 1\n" * 170_000, id="duplicates"),
        pytest.param("".join(f"- &a{i} x\n" for i in range(80_000)), id="anchors"),
        pytest.param("a: &a {x: 1}\n" + "b: {<<: [*a, *a]}\n" * 50_000, id="merge bomb"),
        pytest.param("".join(" " * i + "a:\n" for i in range(1_400)), id="staircase"),
        pytest.param('a: "' + "\\x41" * 200_000 + '"', id="escapes"),
        pytest.param("\x01" * 1_000_000, id="controls"),
        pytest.param("a: " + "1_" * 8_000, id="underscores"),
    ],
)
def test_hostile(source):
    """Hostile files end in located problems and a short message (`benchmarks` has the times)."""
    with pytest.raises(PackError) as caught:
        read(source.encode(), "hostile.yaml")
    assert 1 <= len(caught.value.problems) <= 50
    assert all(
        p.code in {"SK101", "SK102", "SK103", "SK104", "SK105", "SK106", "SK107", "SK203"}
        for p in caught.value.problems
    )
    assert len(str(caught.value)) < 50_000


def test_other_errors_of_the_parser(monkeypatch):
    """An error without a place is reported at the top."""

    class Broken(yaml.SafeLoader):
        """Fails at once."""

        def get_event(self):
            raise yaml.YAMLError

    monkeypatch.setattr(yaml, "CSafeLoader", Broken)
    assert problems("a: 1") == [("SK101", 1, 1)]


def test_pure_python_parser(monkeypatch):
    """Where PyYAML was built without libyaml its own parser gives the same."""
    monkeypatch.delattr(yaml, "CSafeLoader")
    source = b"a: {b: [1, 'x']}\nc: >\n  d\n  e\n"
    document = read(source, "f")
    assert document.root == {"a": {"b": [1, "x"]}, "c": "d e\n"}
    assert document.mark(("a", "b", 1)) == Mark(1, 12, 3)
    assert problems("a: b: c") == [("SK101", 1, 5)]
    assert problems("a: no\nb: &x 1") == [("SK105", 1, 4), ("SK104", 2, 4)]


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz", min_size=1, max_size=6), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_VALUES, st.booleans())
def test_round_trip(value, flow):
    """What a YAML writer writes with all texts quoted is read back as it was."""

    class Quoted(yaml.SafeDumper):
        """Quotes texts, so that nothing is ambiguous."""

        def represent_text(self, text):
            return self.represent_scalar("tag:yaml.org,2002:str", text, style='"')

        def represent_number(self, number):
            text = repr(number)  # PyYAML takes 1e-05 for text: a float needs its point
            text = text if "." in text else text.replace("e", ".0e")
            return self.represent_scalar("tag:yaml.org,2002:float", text)

        def ignore_aliases(self, data):
            return True

    Quoted.add_representer(str, Quoted.represent_text)
    Quoted.add_representer(float, Quoted.represent_number)
    text = yaml.dump(value, Dumper=Quoted, allow_unicode=True, default_flow_style=flow, width=40)
    assert read(text.encode(), "f").root == value


def _same(ours: object, theirs: object) -> bool:
    """Compare but for numbers like 1e3, which PyYAML takes for text."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(_same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    return ours == theirs or str(ours) == str(theirs) or isinstance(ours, float)


def attempt(source: bytes) -> tuple[object, tuple[Problem, ...]]:
    """Read a file: its root and no problems, or nothing and its problems."""
    try:
        return read(source, "f").root, ()
    except PackError as error:
        return None, error.problems


@given(st.text(st.sampled_from("ab:-?[]{},&*!|>'\"%@` \n\t#10~<=."), max_size=60))
def test_any_text(text):
    """Whatever the text, there are located problems or a value; what is read, PyYAML reads alike."""
    root, found = attempt(text.encode())
    if found:
        assert all(1 <= p.line <= text.count("\n") + 1 and p.col >= 1 for p in found)
    else:
        base, safe = (yaml.load(text, Loader=loader) for loader in (yaml.CBaseLoader, yaml.CSafeLoader))
        assert root == base or _same(root, safe)


@pytest.mark.capability("issue 2 §3: the strict reader: every mistake of YAML has its code and place")
@given(st.binary(max_size=60))
def test_any_bytes(source):
    """Random bytes raise nothing but located problems."""
    _, found = attempt(source)
    assert all(p.line >= 1 and (p.code.startswith("SK10") or p.code == "SK203") for p in found)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("a: b\u200bc\n".encode(), "a: b\ufffdc"),
        ("a: b\xe9c\n".encode("latin-1"), "a: b\ufffdc"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_a_replacement(source, shown):
    """The caret stands under a sign that a terminal shows, not under one that it obeys."""
    with pytest.raises(PackError) as caught:
        read(source, "f")
    (problem,) = caught.value.problems
    assert (problem.snippet, problem.col) == (shown, 5)
