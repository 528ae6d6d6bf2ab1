"""What loading a pack costs: reading 1,000 rules against PyYAML, parsing and checking 1,000 conditions, bad files.

python benchmarks/language.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import yaml

from stabilitykit.errors import PackError
from stabilitykit.rules.condition import Names, check_condition
from stabilitykit.rules.reader import read
from stabilitykit.rules.syntax import parse_condition
from stabilitykit.signals import CATALOGUE

CONDITION = (
    "(itl_ms > {} ms and queue_ms > 3 ms) or mean(ttft_ms, 5 turns) > 1.2 * prefill_ms or not kv_usage_ratio < 92 %"
)
RULE = """  - rule: r-{0}
    desc: inter-token latency stays above its own baseline
    when: {1}
    for: 3 turns
    keep_for: 2 turns
    severity: critical
    do:
      - throttle: {{}}
    reason: "ITL {{{{ itl_ms }}}} ms"
    tags: [stable, latency]
"""
HOSTILE = {
    "open brackets": "[" * (1 << 20),
    "100,000 keys": "".join(f"k{i}: 1\n" for i in range(100_000))[: 1 << 20],
    "500,000 values": "[" + "a," * 500_000 + "]",
    "170,000 pairs": "[" + "a: b," * 170_000 + "]",
    "170,000 duplicates": "a: 1\n" * 170_000,
    "80,000 anchors": "".join(f"- &a{i} x\n" for i in range(80_000)),
    "merge bomb": "a: &a {x: 1}\n" + "b: {<<: [*a, *a]}\n" * 50_000,
    "a huge scalar": "a: " + "x" * 1_000_000,
    "a million line breaks": "\n" * 1_000_000,
}


def best(work: Callable[[], object], tries: int = 5) -> float:
    times = []
    for _ in range(tries):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times) * 1e3


def refuse(source: bytes) -> None:
    try:
        read(source, "hostile.yaml")
    except PackError:
        return
    raise AssertionError("accepted")


def main() -> None:
    texts = [CONDITION.format(i) for i in range(1_000)]
    rules = "".join(RULE.format(i, text) for i, text in enumerate(texts))
    source = ("stabilitykit: 1\npack: big\nrules:\n" + rules).encode()
    names = Names(CATALOGUE)
    ours = best(lambda: read(source, "big.yaml"))
    theirs = best(lambda: yaml.load(source, Loader=yaml.CSafeLoader))
    print(f"read 1,000 rules          {ours:8.1f} ms   CSafeLoader {theirs:.1f} ms, ratio {ours / theirs:.2f}")
    print(f"parse 1,000 conditions    {best(lambda: [parse_condition(text) for text in texts]):8.1f} ms")
    print(f"check 1,000 conditions    {best(lambda: [check_condition(text, names) for text in texts]):8.1f} ms")
    for name, text in HOSTILE.items():
        bad = text.encode()
        print(f"refuse {name:22s} {best(lambda bad=bad: refuse(bad), 3):5.0f} ms")  # type: ignore[misc]


if __name__ == "__main__":
    main()
