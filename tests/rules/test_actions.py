from __future__ import annotations

import pytest

from stabilitykit.decision import ACTIONS, Action, ParamSpec
from tests.rules.packs import HEAD, expect_problems, load

RULE = "rules:\n  - rule: a\n    when: itl_ms > 80 ms\n    do: "


def test_an_action_has_all_its_parameters(tmp_path):
    """Defaults are filled in, literals and params are in the parameter's unit."""
    text = (
        HEAD
        + "params:\n  rest: {default: 1 s}\n"
        + RULE
        + (
            "[{throttle: {}}, {refuse_new: {retry_after_s: params.rest}}, "
            "{trim_context: {budget: 30 %, summary: true}}]\n"
        )
    )
    assert load(tmp_path, text).rule("a").do == (
        Action("throttle", {"max_concurrency": 1}),
        Action("refuse_new", {"retry_after_s": 1.0}),
        Action("trim_context", {"budget": 0.3, "summary": True, "anchors": 3}),
    )
    assert {a.source for a in load(tmp_path, text).rule("a").do} == {"rule:a"}


@pytest.mark.parametrize(
    ("code", "do"),
    [
        ("SK203", "¦throttle"),
        ("SK203", "[¦throttle]"),
        ("SK203", "[¦{throttle: {}, emit_metric: {}}]"),
        ("SK203", "[¦{}]"),
        ("SK203", "[{¦throttle: }]"),
        ("SK203", "[{throttle: ¦3}]"),
        ("SK304", "[{¦throtle: {}}]"),
        ("SK304", "[{throttle: {¦max_concurency: 1}}]"),
        ("SK304", "[{repair_mask: {¦deep: true}}]"),
        ("SK417", "[{throttle: {max_concurrency: ¦0}}]"),
        ("SK417", "[{throttle: {max_concurrency: ¦1.5}}]"),
        ("SK417", "[{throttle: {max_concurrency: ¦few}}]"),
        ("SK417", "[{switch_model: {to: ¦4}}]"),
        ("SK417", "[{switch_model: {to: ¦true}}]"),
        ("SK417", "[{switch_model: {to: ¦[light]}}]"),
        ("SK417", "[{trim_context: {summary: ¦1}}]"),
        ("SK416", "[{inject_state_tokens: {format: ¦shrot}}]"),
        ("SK411", "[{refuse_new: {retry_after_s: ¦5}}]"),
        ("SK303", "[{switch_model: {to: ¦params.light}}]"),
    ],
)
def test_a_wrong_action_is_located(tmp_path, code, do):
    """Name, parameters, types and ranges are checked against the action table."""
    expect_problems(tmp_path, HEAD + RULE + do + "\n", code)


def test_a_tilde_leaves_a_parameter_at_its_default(tmp_path):
    """As everywhere, `~` is the default."""
    assert load(tmp_path, HEAD + RULE + "[{throttle: {max_concurrency: ~}}]\n").rule("a").do[0].params == {
        "max_concurrency": 1
    }


def test_a_pack_declares_actions(tmp_path):
    """Own actions come behind those of the language, sorted by name: order of mappings means nothing."""
    text = HEAD + (
        "actions:\n"
        "  warm_up: {doc: get ready, many: true, drops: [throttle]}\n"
        "  alert: {doc: call, group: answer, rank: 9, params: {after: {default: 5 s, max: 1 s}, to: {default: ops},\n"
        "    level: {default: low, values: [low, high]}, n: {default: 3, min: 1}, loud: {default: false}}}\n"
    ).replace(", max: 1 s", ", max: 10 s")
    pack = load(tmp_path, text + RULE + "[{alert: {level: high, after: 2 s}}, {warm_up: {}}]\n")
    alert, warm = pack.actions["alert"], pack.actions["warm_up"]
    assert (alert.order, warm.order) == (len(ACTIONS), len(ACTIONS) + 1)
    assert (alert.group, alert.rank, warm.many, warm.drops) == ("answer", 9, True, ("throttle",))
    assert alert.param("after") == ParamSpec("after", 5.0, "", "s", "number", float("-inf"), 10.0)
    assert pack.rule("a").do[0].params == {"after": 2.0, "level": "high", "loud": False, "n": 3, "to": "ops"}


@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("SK309", "¦throttle: {doc: x}"),
        ("SK203", "x: ¦5"),
        ("SK201", "x: {doc: x, ¦rnk: 1}"),
        ("SK202", "¦x: {group: answer}"),
        ("SK206", "x: {group: answer, rank: ¦1}"),
        ("SK206", "x: {group: answer, rank: ¦-1}"),
        ("SK304", "x: {drops: [¦throtle]}"),
        ("SK203", "x: {params: ¦[a]}"),
        ("SK203", "x: {params: {a: ¦5}}"),
        ("SK205", "x: {params: {¦A: {default: 5}}}"),
        ("SK202", "x: {params: {a: ¦{min: 5}}}"),
        ("SK411", "x: {params: {a: {default: ¦5 mss}}}"),
        ("SK417", "x: {params: {a: {default: ¦5 s, max: 1 s}}}"),
        ("SK411", "x: {params: {a: {default: 5 s, max: ¦9}}}"),
        ("SK416", "x: {params: {a: {default: ¦mid, values: [low, high]}}}"),
    ],
)
def test_a_wrong_declaration_is_located(tmp_path, code, action):
    """Declared actions are held to the same rules as those of the language."""
    expect_problems(tmp_path, HEAD + f"actions:\n  {action}\n", code)
