"""Pack files that are too large to be committed: each reaches a limit, or makes much work of little text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

HEAD = "stabilitykit: 1\npack: bad\nextends: [base]\n"
RULES = HEAD + "rules:\n"
MEBIBYTE = 1 << 20
LONG = "a-long-id-that-all-the-rules-share-except-for-its-end"
MACHINE = HEAD + "machine:\n  override: true\n  initial: a\n"


def filled(head: str, part: Callable[[int], str], most: int = MEBIBYTE) -> str:
    """Repeat a part until the file is as great as a file may be, or so many times."""
    parts, size = [head], len(head)
    for i in range(most):
        text = part(i)
        size += len(text)
        if size > MEBIBYTE - 10:
            break
        parts.append(text)
    return "".join(parts)


def rules(when: Callable[[int], str], most: int = 2_000, more: str = "") -> str:
    """Write many rules in flow style."""
    return filled(RULES, lambda i: f"  - {{rule: r{i}, when: '{when(i)}'{more}}}\n", most)


def machine(states: int, transitions: Iterator[str]) -> str:
    """Write a machine of many states and transitions."""
    names = ",".join("{state: " + ("a" if i == 0 else "b" if i == 1 else f"s{i}") + "}" for i in range(states))
    return MACHINE + f"  states: [{names}]\n  transitions: [{','.join(transitions)}]\n"


def guard(words: list[str]) -> str:
    """Write a transition with a long guard."""
    return "{from: a, to: b, when: '" + " or ".join(words) + "'}"


FAMILIES: dict[str, tuple[str, Callable[[], str]]] = {
    "a file of more than a mebibyte": ("SK107", lambda: HEAD + "# x\n" * 270_000),
    "values in a list": ("SK107", lambda: HEAD + "x: [" + "a," * 210_000 + "]\n"),
    "keys": ("SK107", lambda: filled(HEAD, lambda i: f"k{i}: 1\n")),
    "nested lists": ("SK107", lambda: filled(HEAD + "x:\n", lambda i: "- [[[a]]]\n")),
    "open brackets": ("SK101", lambda: "[" * MEBIBYTE),
    "duplicate keys": ("SK103", lambda: filled(HEAD, lambda i: "a: 1\n")),
    "anchors": ("SK104", lambda: filled("", lambda i: f"- &a{i} x\n")),
    "line breaks": ("SK101", lambda: "\n" * (MEBIBYTE - 1)),
    "invisible characters": ("SK102", lambda: HEAD + "desc: '" + "\u200b" * 300_000 + "'\n"),
    "params": ("SK602", lambda: filled(HEAD + "params:\n", lambda i: f"  p{i}: {{default: 80 ms}}\n", 15_000)),
    "params without unit": ("SK107", lambda: filled(HEAD + "params:\n", lambda i: f"  p{i}: {{default: {i} mss}}\n")),
    "detectors": ("SK602", lambda: filled(HEAD + "detectors:\n", lambda i: f"  d{i}: {{type: itl_breaker}}\n", 20_000)),
    "rules": ("SK602", lambda: rules(lambda i: "itl_ms > 3 ms", 12_000)),
    "rules of one id": ("SK309", lambda: filled(RULES, lambda i: "  - {rule: r, when: itl_ms > 3 ms}\n", 12_000)),
    "comparisons": ("SK602", lambda: rules(lambda i: " or ".join(f"itl_ms > {i + k} ms" for k in range(30)))),
    "terms": ("SK602", lambda: rules(lambda i: f"prev(itl_ms + {i} ms) + delta(itl_ms + {i} ms) > 3 ms")),
    "products": ("SK602", lambda: rules(lambda i: " * ".join(["(kernel_us / itl_ms)"] * 30) + " > 3")),
    "conditions of 16 KiB": ("SK601", lambda: rules(lambda i: "itl_ms > 1 ms or " * 900 + "itl_ms > 1 ms")),
    "folded conditions": (
        "SK601",
        lambda: filled(
            RULES, lambda i: f"  - rule: r{i}\n    when: >\n" + "      itl_ms > 1 ms or\n" * 120 + "      zz\n"
        ),
    ),
    "misspelt rules": (
        "SK305",
        lambda: filled(RULES, lambda i: f"  - {{rule: {LONG}-{i:04d}, when: 'rule:{LONG[:-3]}x-{i:04d}'}}\n", 2_000),
    ),
    "misspelt params": (
        "SK303",
        lambda: (
            filled(
                HEAD + "params:\n", lambda i: f"  a_long_name_of_a_parameter_like_others_{i}: {{default: 1}}\n", 1_900
            )
            + "rules:\n"
            + "".join(
                f"  - {{rule: r{i}, when: itl_ms > params.a_long_name_of_a_paramter_like_others_{i}}}\n"
                for i in range(900)
            )
        ),
    ),
    "a circle of 2,000 rules": ("SK307", lambda: rules(lambda i: f"rule:r{(i + 1) % 2_000}")),
    "1,000 circles": ("SK307", lambda: rules(lambda i: f"rule:r{i ^ 1}")),
    "everybody names everybody": (
        "SK602",
        lambda: rules(lambda i: " or ".join(f"rule:r{k}" for k in range(60)), 1_900),
    ),
    "words of an enum": (
        "SK206",
        lambda: HEAD + f"signals:\n  phase: {{values: [{','.join(f'w{i}' for i in range(90_000))}]}}\n",
    ),
    "states": ("SK602", lambda: machine(20_000, iter(["{from: a, to: b, after: 3 turns}"]))),
    "transitions": ("SK602", lambda: machine(2, (f"{{from: a, to: b, after: {i + 1} turns}}" for i in range(10_000)))),
    "guards": (
        "SK602",
        lambda: machine(2, (guard([f"at least {k + i + 2} info" for k in range(80)]) for i in range(400))),
    ),
    "a guard against another": (
        "SK502",
        lambda: machine(
            3,
            iter(
                [
                    guard([f"at least {k + 9} info" for k in range(120)]),
                    guard([f"at least {k + 2}" for k in range(120)]),
                ]
            ),
        ),
    ),
    "lists of states": (
        "SK502",
        lambda: machine(
            64,
            (
                f"{{from: [{','.join(f's{i}' for i in range(2, 64))}], to: b, after: {500 - k} turns}}"
                for k in range(380)
            ),
        ),
    ),
    "extends": ("SK321", lambda: HEAD[:-2] + "," + ",".join(f"./p{i}.yaml" for i in range(60_000)) + "]\n"),
    "templates": (
        "SK605",
        lambda: rules(lambda i: "itl_ms > 3 ms", 1_000, ", reason: '" + "{% if itl_ms %}x{% endif %}" * 30 + "'"),
    ),
    "deep templates": (
        "SK605",
        lambda: rules(lambda i: "itl_ms > 3 ms", 500, ", reason: '{% if " + "not " * 480 + "itl_ms %}x{% endif %}'"),
    ),
}
"""By name: the code of the first problem by position, and the text."""
