"""Conditions: names, units, types, scopes, canonical text, and every code with its place."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stabilitykit.rules.conditions.condition import Names, check_condition, walk
from stabilitykit.rules.pack import Node
from tests.rules.vocabulary import NAMES, conditions

_MEMORY = frozenset(("mean", "wmin", "wmax", "count", "prev", "delta"))


def checked(text: str) -> Node:
    """Check a sound condition."""
    node, problems = check_condition(text, NAMES)
    assert not problems, [str(problem) for problem in problems]
    assert node is not None
    return node


def sketch(node: Node) -> str:
    """Write a node as a prefix expression."""
    if node.op == "num":
        return f"{node.value:g}"
    own = {"sig": node.name, "out": node.name, "param": f"params.{node.name}", "rule": f"rule:{node.name}"}.get(node.op)
    own = own or (node.name if node.op == "cmp" else node.op + (f"#{node.n}" if node.n else ""))
    return f"{own}({', '.join(map(sketch, node.args))})" if node.args else own


@pytest.mark.capability(
    "issue 2 §3: grammar, units and scopes of conditions; each mistake with code, place and nearest name"
)
@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("itl.is_over and itl_ms > params.slow", "itl.is_over and itl_ms > params.slow"),
        ("kv_fragmentation_ratio > 40 %", "kv_fragmentation_ratio > 0.4"),
        ("kv_fragmentation_ratio>0.40", "kv_fragmentation_ratio > 0.4"),
        ("not (x > 1 ms or rule:slow-turns)", "not (x > 1 ms or rule:slow-turns)"),
        ("not x > 80.0 ms", "not x > 80 ms"),
        ("finish_reason in {length, stop}", "finish_reason == length or finish_reason == stop"),
        ("finish_reason in {stop}", "finish_reason == stop"),
        ("finish_reason in {stop, stop}", "finish_reason == stop"),
        ("itl.is_over and error in {server, timeout}", "itl.is_over and (error == server or error == timeout)"),
        ("x > 1.50 * mean(itl_ms, 5 turn)", "x > 1.5 * mean(itl_ms, 5 turns)"),
        ("count( x>80ms and y > 2 ms,5 turns )>=2", "count(x > 80 ms and y > 2 ms, 5 turns) >= 2"),
        ("output_tokens / rt_ms > 20 tokens/s", "output_tokens / rt_ms > 20 tokens/s"),
        ("queue_full_per_s >= 17 /s", "queue_full_per_s >= 17 /s"),
        ("gpu_temperature_c>85C", "gpu_temperature_c > 85 C"),
        ("input_tokens > 8192", "input_tokens > 8192 tokens"),
        ("input_tokens > 8192 tokens", "input_tokens > 8192 tokens"),
        ("input_tokens > params.limit", "input_tokens > params.limit"),
        ("x > 3 s", "x > 3000 ms"),
        ("x > 1500 us", "x > 1500 us"),
        ("kernel_us > 2 ms", "kernel_us > 2000 us"),
        ("heap_mib > 1 GiB", "heap_mib > 1024 MiB"),
        ("((x)) > (3 ms)", "x > 3 ms"),
        ("(x > 3 ms and y > 3 ms) and itl.is_over", "x > 3 ms and y > 3 ms and itl.is_over"),
        ("x > 3 ms and (y > 3 ms and itl.is_over)", "x > 3 ms and y > 3 ms and itl.is_over"),
        ("(x > 3 ms or y > 3 ms) and itl.is_over", "(x > 3 ms or y > 3 ms) and itl.is_over"),
        ("x - (y - x) > 3 ms", "x - (y - x) > 3 ms"),
        ("(x - y) - x > 3 ms", "x - y - x > 3 ms"),
        ("x / (2 * 3) > 3 ms", "x / (2 * 3) > 3 ms"),
        ("-(x - y) > -3 ms", "-(x - y) > -3 ms"),
        ("x - - 5 ms > --8 ms", "x - -5 ms > 8 ms"),
        ("y > x", "y > x"),
        ("delta(x) > -5 ms", "delta(x) > -5 ms"),
        ("max(x, params.window) > 3 ms", "max(x, params.window) > 3 ms"),
        ("max(x, y) > 3 ms", "max(x, y) > 3 ms"),
        ("min(x, 5 turns) > 3 ms", "min(x, 5 turns) > 3 ms"),
        ("mean(kv_usage_ratio, params.samples) > 0.9", "mean(kv_usage_ratio, params.samples) > 0.9"),
        ("finish_reason == params.reason", "finish_reason == params.reason"),
        ("rule : slow-turns or itl . is_over", "rule:slow-turns or itl.is_over"),
        ("x > 0.0000001 s", "x > 0.0001 ms"),
        ("kernel_us > 1e11 us", "kernel_us > 100000000000 us"),
    ],
)
def test_canonical_text(text, canonical):
    """Equal meaning in another spelling has equal text; the text means the same again."""
    assert checked(text).text == canonical
    assert checked(canonical).text == canonical


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("not itl.is_over", "not(truth(itl.is_over))"),
        ("is_history_truncated", "truth(is_history_truncated)"),
        ("rule:slow-turns", "rule:slow-turns"),
        ("x > -5 ms + y", ">(x, +(-5, y))"),
        ("kernel_us > itl_ms", ">(kernel_us, *(itl_ms, 1000))"),
        ("itl_ms > 1500 us", ">(*(itl_ms, 1000), 1500)"),
        ("itl_ms > 0.0011 s", ">(itl_ms, 1.1)"),
        ("kernel_us > params.slow", ">(kernel_us, *(params.slow, 1000))"),
        ("kernel_us + itl_ms > 3 ms", ">(+(kernel_us, *(itl_ms, 1000)), 3000)"),
        ("output_tokens / rt_ms > 20 tokens/s", ">(*(/(output_tokens, rt_ms), 1000), 20)"),
        ("kernel_us / x > 0.5", ">(/(kernel_us, x), 500)"),
        ("kernel_us / x > heap_mib / 1 KiB", ">(/(kernel_us, x), *(/(heap_mib, 1), 1.024e+06))"),
        ("kernel_us / x > heap_mib / 1 GiB", ">(*(/(kernel_us, x), 128), *(/(heap_mib, 1), 125))"),
        ("kernel_us / x > 2 * 3", ">(/(kernel_us, x), *(*(2, 3), 1000))"),
        ("kernel_us / x > params.factor", ">(/(kernel_us, x), *(params.factor, 1000))"),
        ("params.reason != finish_reason", "!=(params.reason, finish_reason)"),
        ("x / delta(y) > -0.5", ">(/(x, delta(y)), -0.5)"),
        ("itl.baseline_ms - itl.baseline_ms > 3 ms", ">(-(itl.baseline_ms, itl.baseline_ms), 3)"),
        ("itl.baseline_ms * 0 > 3 ms", ">(*(itl.baseline_ms, 0), 3)"),
        ("input_tokens > 2 * 4096", ">(input_tokens, *(2, 4096))"),
        ("1 / x > 3 /s", ">(*(/(1, x), 1000), 3)"),
        ("heap_mib > 512 KiB", ">(*(heap_mib, 1024), 512)"),
        ("finish_reason == length", "==(finish_reason, 1)"),
        ("length == finish_reason", "==(1, finish_reason)"),
        ("finish_reason == error", "==(finish_reason, 5)"),
        ("error == finish_reason", "==(5, finish_reason)"),
        ("error != none and prev(error) == none", "and(!=(error, 0), ==(prev(error), 0))"),
        ("mean(x, 5 turns) > 3 ms", ">(mean#5(x), 3)"),
        ("max(x, 5 turns) > 3 ms", ">(wmax#5(x), 3)"),
        ("min(x, params.window) > 3 ms", ">(wmin#5(x), 3)"),
        ("max(3 ms, x) > y", ">(max(3, x), y)"),
        ("abs(delta(x)) > 3 ms", ">(abs(delta(x)), 3)"),
        ("count(itl.is_over, 4 turns) == 2", "==(count#4(truth(itl.is_over)), 2)"),
        ("itl.seen == 3", "==(itl.seen, 3)"),
        ("output_tokens == 0", "==(output_tokens, 0)"),
        ("input_tokens * 1.5 > 8192", ">(*(input_tokens, 1.5), 8192)"),
    ],
)
def test_nodes(text, tree):
    """What the engine gets: scaled literals, whole-number factors, words as numbers."""
    assert sketch(checked(text)) == tree


@pytest.mark.parametrize(
    ("text", "scopes"),
    [
        ("x > 3 ms", {"cmp": "session", "sig": "session", "num": ""}),
        ("kv_usage_ratio > 0.9", {"cmp": "replica", "sig": "replica", "num": ""}),
        ("gpu_temperature_c > 85 C", {"cmp": "device"}),
        ("mean(kv_usage_ratio, 5 samples) > 0.9 and x > 3 ms", {"and": "session", "mean": "replica"}),
        ("kernel_us > itl_ms", {"cmp": "session", "*": "session"}),
        ("kernel_us > 3 us and kv_usage_ratio > 0.9", {"and": "replica"}),
        ("rule:full", {"rule": "replica"}),
        ("rule:full and x > 3 ms", {"and": "session", "rule": "replica"}),
        ("count(kv.is_over, 3 samples) > 1", {"count": "replica", "truth": "replica"}),
        ("x > params.slow", {"param": ""}),
        ("error in {timeout, server} and kv.is_over", {"or": "session", "and": "session"}),
    ],
)
def test_scopes(text, scopes):
    """A sub-expression lives in the narrowest scope of what it reads."""
    found = {node.op: node.scope for node in walk(checked(text))}
    assert scopes.items() <= found.items()


def test_scope_of_an_unchecked_rule():
    """A rule whose scope is not known yet counts as the hint says."""
    for hint, scope in ((None, "session"), ("replica", "replica")):
        node, _ = check_condition("rule:unchecked", NAMES, rule_scope_hint=hint)
        assert node is not None
        assert node.scope == scope


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("x > 3 ms", {"cmp": "", "sig": "ms", "num": "ms"}),
        ("itl.is_over", {"truth": "", "out": "bool"}),
        ("output_tokens / rt_ms > 20 tokens/s", {"/": "1000 tokens/s", "*": "tokens/s"}),
        ("mean(x, 5 turns) > 3 ms", {"mean": "ms"}),
        ("x / y > 0.5", {"/": "ratio", "num": "ratio"}),
        ("count(itl.is_over, 4 turns) > 2", {"count": "count", "num": "count"}),
        ("finish_reason == stop", {"sig": "enum", "num": "enum"}),
        ("delta(waiting_requests) > 3", {"delta": "count"}),
        ("prev(input_tokens) > 3", {"prev": "tokens", "num": "tokens"}),
    ],
)
def test_units(text, units):
    """Every number carries its unit."""
    found = {node.op: node.unit for node in walk(checked(text))}
    assert units.items() <= found.items()


@pytest.mark.capability(
    "issue 2 §3: grammar, units and scopes of conditions; each mistake with code, place and nearest name"
)
@pytest.mark.parametrize(
    ("text", "code", "col", "width"),
    [
        ("itl_mss > 3 ms", "SK301", 1, 7),
        ("embedding > 3", "SK402", 1, 9),
        ("foo.is_over", "SK302", 1, 3),
        ("not itl.is_ovr", "SK302", 9, 6),
        ("x > params.slwo", "SK303", 12, 4),
        ("x > 3 ms or rule:nope", "SK305", 13, 9),
        ("rule:off", "SK305", 1, 8),
        ("median(x) > 3", "SK306", 1, 6),
        ("x", "SK402", 1, 1),
        ("x > 3 ms and finish_reason", "SK402", 14, 13),
        ("itl.is_over > 3", "SK402", 1, 11),
        ("itl.is_over == is_history_truncated", "SK402", 1, 11),
        ("x + (y > 3 ms) > 2 ms", "SK402", 6, 8),
        ("x > (zz > 3)", "SK301", 6, 2),
        ("max(zz, y) > 3 ms", "SK301", 5, 2),
        ("abs(zz) > 3 ms", "SK301", 5, 2),
        ("zz in {stop}", "SK301", 1, 2),
        ("not zz", "SK301", 5, 2),
        ("x + 1e999 ms > 3 ms", "SK106", 5, 8),
        ("itl.balance == 2.5", "SK414", 16, 3),
        ("abs(x > 3 ms) > 2", "SK402", 5, 8),
        ("rule:slow-turns > 2", "SK402", 1, 15),
        ("count(x, 3 turns) > 2", "SK402", 7, 1),
        ("prev(itl.is_over)", "SK402", 6, 11),
        ("delta(error) > 1", "SK402", 7, 5),
        ("finish_reason > length", "SK402", 1, 22),
        ("-error > 1", "SK402", 2, 5),
        ("x in {stop}", "SK402", 1, 1),
        ("params.reason", "SK402", 1, 13),
        ("x > params.reason", "SK402", 5, 13),
        ("params.strict and x > 3 ms", "SK422", 1, 13),
        ("x > true", "SK422", 5, 4),
        ("x > 3 nats", "SK410", 1, 10),
        ("x + loss_nats > 3 ms", "SK410", 1, 13),
        ("loss_bits > loss_nats", "SK410", 1, 21),
        ("max(x, loss_nats) > 3 ms", "SK410", 1, 17),
        ("x * y > 3 ms", "SK410", 1, 5),
        ("x > kv_usage_ratio", "SK410", 1, 18),
        ("kv_idle_turns > 3 turns", "SK410", 1, 23),
        ("error == 3", "SK410", 1, 10),
        ("x > 80", "SK411", 5, 2),
        ("x > 80 %", "SK411", 5, 4),
        ("x > 2 * 40", "SK411", 5, 6),
        ("80 < x", "SK411", 1, 2),
        ("waiting_requests > 50 %", "SK411", 20, 4),
        ("input_tokens > 50 %", "SK411", 16, 4),
        ("x > 3 seconds", "SK411", 7, 7),
        ("x > params.factor", "SK411", 5, 13),
        ("mean(x, 5) > 3 ms", "SK412", 9, 1),
        ("mean(x, 5 ms) > 3 ms", "SK412", 9, 4),
        ("mean(x, y) > 3 ms", "SK412", 9, 1),
        ("mean(x, 5.5 turns) > 3 ms", "SK412", 9, 9),
        ("mean(x, params.slow) > 3 ms", "SK412", 9, 11),
        ("mean(x, 5 samples) > 3 ms", "SK412", 9, 9),
        ("mean(x, params.samples) > 3 ms", "SK412", 9, 14),
        ("mean(kv_usage_ratio, 5 turns) > 3 %", "SK412", 22, 7),
        ("x > 3 ms and mean(gpu_temperature_c, 5 turns) > 3 C", "SK412", 38, 7),
        ("count(kv_usage_ratio > 0.9, 5 turns) > 3", "SK412", 29, 7),
        ("x == 3 ms", "SK413", 1, 1),
        ("kv_usage_ratio != 0.5", "SK413", 1, 14),
        ("mean(output_tokens, 5 turns) == 3", "SK413", 1, 28),
        ("output_tokens == itl_ms * 20 tokens/s", "SK413", 18, 20),
        ("kv_usage_ratio > 92", "SK414", 18, 2),
        ("kv_usage_ratio > 1", "SK414", 18, 1),
        ("kv_usage_ratio >= 0", "SK414", 19, 1),
        ("kv_usage_ratio < params.factor", "SK414", 18, 13),
        ("92 < kv_usage_ratio", "SK414", 1, 2),
        ("x < -3 ms", "SK414", 5, 5),
        ("gpu_temperature_c > 250 C", "SK414", 21, 5),
        ("delta(kv_usage_ratio) > 1.5", "SK414", 25, 3),
        ("output_tokens == 2.5", "SK414", 18, 3),
        ("output_tokens != -1", "SK414", 18, 2),
        ("count(itl.is_over, 3 turns) > 3", "SK414", 31, 1),
        ("http_status == 42", "SK414", 16, 2),
        ("3 ms > 2 ms", "SK415", 1, 11),
        ("params.slow > 2 ms", "SK415", 1, 18),
        ("x > 2 ms and params.slow > 2 ms", "SK415", 14, 18),
        ("x > prev(params.slow)", "SK415", 5, 17),
        ("x > mean(3 ms, 5 turns)", "SK415", 5, 19),
        ("finish_reason == stopp", "SK416", 18, 5),
        ("stopp == finish_reason", "SK416", 1, 5),
        ("finish_reason in {stop, leng}", "SK416", 25, 4),
        ("prev(error) == tmeout", "SK416", 16, 6),
        ("finish_reason == params.other", "SK416", 18, 12),
        ("1 ms < x < 5 ms", "SK421", 10, 1),
        ("mean(x, 1 turns) > 3 ms", "SK206", 9, 7),
        ("mean(x, 65 turns) > 3 ms", "SK206", 9, 8),
        ("mean(x, params.huge) > 3 ms", "SK206", 9, 11),
        ("count(itl.is_over, 99999999999999 turns) > 3", "SK206", 20, 20),
        ("x > 1e999 ms", "SK106", 5, 8),
        ("kernel_us > 1e305 s", "SK106", 13, 7),
        ("x >", "SK401", 4, 1),
    ],
)
def test_codes(text, code, col, width):
    """Every mistake has its code and exact place."""
    node, problems = check_condition(text, NAMES)
    assert node is None
    first = problems[0]
    assert (first.code, first.offset + 1, first.width) == (code, col, width), [str(problem) for problem in problems]


@pytest.mark.capability(
    "issue 2 §3: grammar, units and scopes of conditions; each mistake with code, place and nearest name"
)
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("itl_mss > 3 ms", "did you mean `itl_ms`?"),
        ("itl > 3 ms", "write `itl.is_over`"),
        ("slow > 3 ms", "write `params.slow`"),
        ("itl.is_ovr", "did you mean `is_over`?"),
        ("itl.zzzzz", "is_over baseline_ms seen"),
        ("min(x) > 3 ms", "min(x, 5 turns)"),
        ("mean(x) > 3 ms", "mean(x, 5 turns)"),
        ("tl.is_over", "did you mean `itl`?"),
        ("parms.slow > x", "did you mean `params`?"),
        ("x > params.slwo", "did you mean `slow`?"),
        ("rule:slow-turn", "did you mean `slow-turns`?"),
        ("x > 80", "write `80 ms`"),
        ("x > -80", "write `-80 ms`"),
        ("mean(x, 5) > 3 ms", "write `5 turns`"),
        ("mean(kv_usage_ratio, 5) > 0.5", "write `5 samples`"),
        ("mean(kv_usage_ratio, 5 turns) > 0.5", "write `5 samples`"),
        ("kv_usage_ratio > 92", "0.92"),
        ("x > 1e10 ms", "within 0 to 1e+09 ms"),
        ("finish_reason == stopp", "did you mean `stop`?"),
        ("finish_reason == zzzzzzz", "tool_calls"),
        ("waiting_requests > 50 %", "write 0.5"),
    ],
)
def test_hints(text, hint):
    """Every mistake comes with a fix or the nearest name."""
    _, problems = check_condition(text, NAMES)
    assert hint in problems[0].hint


def test_all_mistakes_of_a_condition():
    """One look shows everything, and one mistake does not cause another."""
    _, problems = check_condition("itl_mss > 3 and kv_usage_ratio > 92 or x == 3 and itl.foo or not rule:nope", NAMES)
    assert [(p.code, p.offset) for p in problems] == [
        ("SK301", 0),
        ("SK414", 33),
        ("SK411", 44),
        ("SK302", 54),
        ("SK305", 65),
    ]


def test_arguments_of_an_unknown_function_are_checked():
    """Inside a function that does not exist names are still looked up."""
    _, problems = check_condition("median(zz_ms, 5 turns, rule:nope) > 3 or foo(yy > 3 ms)", NAMES)
    assert [p.code for p in problems] == ["SK306", "SK301", "SK305", "SK306", "SK301"]


def test_not_binds_less_than_comparison():
    """`not a > b` is `not (a > b)`."""
    assert sketch(checked("not x > y")) == "not(>(x, y))"


def test_params_keep_their_names():
    """A changed param changes the value, never the text."""
    other = NAMES.params["slow"]
    changed = Names(
        NAMES.signals, NAMES.detectors, {**NAMES.params, "slow": type(other)("slow", 95.0, "ms")}, NAMES.rules
    )
    a, _ = check_condition("x > params.slow", NAMES)
    b, _ = check_condition("x > params.slow", changed)
    assert a is not None
    assert b is not None
    assert a.text == b.text
    assert (a.args[1].value, b.args[1].value) == (80.0, 95.0)


def test_longest_chain():
    """A condition of 256 nodes is checked without running out of stack."""
    node = checked(" or ".join(["itl.is_over"] * 128))
    assert sum(1 for part in walk(node) if part.op == "or") == 127


@given(conditions)
@example("error == finish_reason or finish_reason in {error, stop}")
@example("kernel_us / x > 0.5 and x > 1500 us")
def test_text_means_the_same_again(text):
    """The canonical text of every condition parses to the same node, columns apart."""
    node, problems = check_condition(text, NAMES)
    assert (node is None) is bool(problems)
    if node is not None:
        again, more = check_condition(node.text, NAMES)
        assert more == []
        assert again is not None
        assert again.text == node.text
        memories = [[p.text for p in walk(n) if p.op in _MEMORY] for n in (node, again)]
        assert memories[0] == memories[1]


@given(conditions)
def test_every_memory_has_a_scope_and_a_word(text):
    """What remembers lives in one scope, and its window says that scope's word."""
    node, _ = check_condition(text, NAMES)
    for part in walk(node) if node is not None else ():
        if part.op in _MEMORY:
            assert part.scope in {"session", "replica", "device"}
            assert part.text.startswith(part.op.removeprefix("w"))
        if part.op in {"mean", "wmin", "wmax", "count"}:
            assert 2 <= part.n <= 64
            word = "turns" if part.scope == "session" else "samples"
            assert part.text.endswith((f" {word})", "params.window)", "params.samples)"))


_SOUP = st.lists(
    st.sampled_from(
        "x y itl_ms kv_usage_ratio error finish_reason stop none itl.is_over itl.zz params.slow params.window "
        "params.zz rule:full rule:zz and or not in > >= == != + - * / ( ) { } , 3 0.5 5turns 80ms 7% 3samples true "
        "1e400ms mean( count( prev( max( delta( abs( foo( embedding 2tokens/s kernel_us output_tokens "
        "params.reason".split()
    ),
    max_size=25,
)


@given(_SOUP)
def test_token_soup(words):
    """Random words end in a node or in located problems, never in another exception."""
    text = " ".join(words)
    node, problems = check_condition(text, NAMES)
    assert (node is None) is bool(problems)
    assert all(0 <= p.offset <= len(text) and p.width >= 1 for p in problems)
    assert [p.offset for p in problems] == sorted(p.offset for p in problems)
