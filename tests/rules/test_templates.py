from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from stabilitykit.rules import templates
from stabilitykit.rules.templates import MAX_OUTPUT, UNKNOWN, check_template, render

NAMES = frozenset(("itl_ms", "error", "itl.baseline_ms", "itl.items", "params.slow"))

HOSTILE = [
    "{{ 'A' * 1000000000 }}",
    "{{ 2 ** 9999999 }}",
    "{% for x in [1] %}{{ x }}{% endfor %}",
    "{{ range(10) }}",
    "{{ itl.baseline_ms.real }}",
    "{{ itl['baseline_ms'] }}",
    "{{ itl_ms() }}",
    "{{ itl_ms + 1 }}",
    "{{ [itl_ms] }}",
    "{{ {'a': itl_ms} }}",
    "{{ itl_ms is defined }}",
    "{{ itl_ms if error else 1 }}",
    "{% set x = 1 %}",
    "{% include 'x' %}",
    "{% macro m() %}{% endmacro %}",
    "{{ itl_ms | center(100000) }}",
    "{{ itl_ms | e }}",
    "{{ itl_ms | round(1000) }}",
    "{{ itl_ms | round(precision=1) }}",
    "{{ itl_ms | round(itl_ms) }}",
    "{{ itl_ms | default(boolean=true) }}",
    "{{ itl_ms | no_such }}",
    "{{ itl_ms",
    "{% if itl_ms %}",
    "{{ }}",
    "{% if " + "not " * 20 + "itl_ms %}x{% endif %}",
    "{{ " + "(" * 900 + "itl_ms" + ")" * 900 + " }}",
    "{% if itl_ms > 1 %}{{ itl_ms }}{% endif %}" * 30,
    "x" * 2001,
]


@pytest.mark.capability("issue 2 §9: hostile templates are refused before anything is rendered")
@pytest.mark.parametrize("source", HOSTILE)
def test_what_is_not_on_the_whitelist_is_refused(source):
    """Loops, calls, arithmetic, chains, tests and unknown filters never reach a renderer, and cost no time."""
    begin = time.process_time()
    assert {p.code for p in check_template(source, NAMES)} == {"SK605"}
    assert time.process_time() - begin < 0.5


@pytest.mark.parametrize(
    ("source", "rendered"),
    [
        ("plain text, 100 % { } }}", "plain text, 100 % { } }}"),
        ("{{ itl_ms }}/{{itl.baseline_ms}}", "38.25/40"),
        ("{{ itl_ms | round(1) }} {{ itl_ms | round }} {{ itl_ms|ms }}", "38.2 38 38.2 ms"),
        ("{{ params.slow | pct }} {{ error | upper }} {{ error | lower }}", "7.0 % TIMEOUT timeout"),
        ("{{ itl.items }}", "3"),
        ("{% if itl_ms > 30 and not error == 'none' %}slow{% else %}fine{% endif %}", "slow"),
        ("{% if itl_ms > 30 or true %}a{% endif %}", "a"),
        ("{{ itl_ms | default('none') }}", "38.25"),
        ("{{ true }}", "True"),
        ("{{ itl_ms }}" * 41, "38.25" * 41),
    ],
)
def test_a_sound_template_renders(source, rendered):
    """Names, filters and `if` are enough for a reason."""
    values = {
        "itl_ms": 38.25,
        "error": "timeout",
        "itl": {"baseline_ms": 40, "items": 3},
        "params": {"slow": 0.07},
    }
    assert check_template(source, NAMES) == []
    assert render(source, values) == rendered


def test_an_unknown_value_prints_as_unknown_and_compares_as_nothing():
    """A reason never fails because telemetry is missing."""
    source = "{{ itl_ms }} {{ itl_ms | round(1) }} {{ itl_ms | ms }} {{ itl_ms | pct }} {{ itl_ms | default('-') }}"
    source += "{% if itl_ms > 3 %}over{% endif %}{% if itl_ms <= 3 %}under{% endif %}{% if itl_ms %}some{% endif %}"
    assert check_template(source, NAMES) == []
    assert render(source, {"itl_ms": UNKNOWN}) == "unknown unknown unknown unknown -"


def test_a_name_outside_the_condition_is_located():
    """SK308 has the place of the name in the template and the nearest name."""
    (problem,) = check_template("a {{ itl_ms }} b {{ itl_mz }}", NAMES)
    assert (problem.code, problem.offset, problem.width) == ("SK308", 20, 6)
    assert problem.hint == "did you mean `itl_ms`?"
    assert [p.code for p in check_template("{{ itl_ms.__class__ }}", NAMES)] == ["SK308"]
    (problem,) = check_template("{% if itl.basline_ms > 3 %}x{% endif %}", NAMES)
    assert (problem.code, problem.offset) == ("SK308", 6)
    assert [p.message for p in check_template("{{ itl_ms }}", frozenset())] == ["`when` does not read `itl_ms`"]


def test_a_template_prints_only_what_it_was_given():
    """A name without a value is an error of the caller, not an empty string."""
    with pytest.raises(UndefinedError):
        render("{{ itl_ms }}", {})
    with pytest.raises(KeyError):
        render("{{ itl.baseline_ms }}", {"itl": {}})


def test_output_is_cut():
    """Even a word of a param cannot make a reason grow."""
    assert len(render("{{ error }}" * 40, {"error": "x" * 1000})) == MAX_OUTPUT


_PIECES = st.sampled_from(
    ["{{ itl_ms }}", "{{ nope }}", "{{ itl.x | round(2) }}", "{{itl_ms|ms}}", "text", "{", "}}", " "]
)


@given(st.lists(_PIECES, max_size=8).map("".join))
def test_the_quick_check_agrees_with_the_parser(source):
    """What is judged without parsing is judged as Jinja would."""
    quick = templates._plain_names(source)
    if quick is not None:
        assert [name for name, _ in quick] == [n for n in templates._walk(source) if isinstance(n, str)]
        assert all(source.startswith(name, at) for name, at in quick)


@pytest.mark.capability("issue 2 §9: hostile templates are refused before anything is rendered")
@given(st.text(alphabet="{}%#| ()itlms_.0123456789'\"-+*~", max_size=60))
def test_any_text_is_checked_without_an_exception(source):
    """A template is sound or has problems; sound ones render."""
    if not check_template(source, NAMES):
        values = {"itl_ms": 1.0, "error": "none", "itl": {"baseline_ms": 1, "items": 2}, "params": {"slow": 1}}
        assert len(render(source, values)) <= MAX_OUTPUT


@pytest.mark.parametrize("used", ["pct(99)", "ms(5)", "upper(1)", "round(1, 2)", "default", "default(1, 2)"])
def test_filters_take_their_number_of_arguments(used):
    """A filter with too many or too few arguments is found at load, not when somebody asks why."""
    found = check_template("{{ itl_ms | " + used + " }}", frozenset(["itl_ms"]))
    assert [p.code for p in found] == ["SK605"]
