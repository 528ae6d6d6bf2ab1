"""Is it right? ``python benchmarks/accuracy.py SUBJECT --data DIR [--json]``; without a subject, all of them.

DIR is laid out like the folder of real data that the READMEs describe. A run of every subject, with ``--page``, keeps
its figures in docs/accuracy.json and writes docs/explanation/accuracy.md from them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.subjects import report  # noqa: E402  (a script: its folder, not the root, is on the path)

KEPT = ROOT / "docs" / "accuracy.json"
PAGE = ROOT / "docs" / "explanation" / "accuracy.md"
HEAD = """\
# Accuracy

What each method reaches on real data: trivial baselines, the method of the source documents, the best published or
measured reference, and ours, from one run and one split. Brackets are 95 % bootstrap intervals; folds are grouped by
dialogue, run, endpoint or thread; a line `check` has permuted labels and must be at chance. Written by
`python benchmarks/accuracy.py --data DIR --page`.
"""


def subjects() -> list[str]:
    """Every module of benchmarks/subjects that has a ``run``, by its name with hyphens."""
    folder = ROOT / "benchmarks" / "subjects"
    return sorted(p.stem.replace("_", "-") for p in folder.glob("*.py") if "\ndef run(data: Path" in p.read_text())


def measure(subject: str, data: Path) -> dict[str, Any]:
    """Run one subject."""
    module = importlib.import_module(f"benchmarks.subjects.{subject.replace('-', '_')}")
    day = datetime.now(UTC).date().isoformat()
    return {"subject": subject, "title": module.TITLE, "day": day, **module.run(data).to_dict()}


def page(kept: dict[str, Any]) -> str:
    """Give the page for the figures kept so far."""
    text = [HEAD]
    for name, one in sorted(kept.items()):
        text += [f"## {one['title']}", "", f"`{name}`, {one['day']}.", *report.tables(one)]
    return "\n".join(text).rstrip() + "\n"


def keep(found: dict[str, Any]) -> None:
    """Keep the figures and write the page."""
    kept = (json.loads(KEPT.read_text()) if KEPT.exists() else {}) | found
    KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n")
    PAGE.write_text(page(kept))


def main(arguments: list[str] | None = None) -> int:
    """Run subjects; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("subject", nargs="*", choices=[*subjects(), []], help="what to measure (default: everything)")
    parser.add_argument("--data", type=Path, required=True, help="folder of real data")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--page", action="store_true", help="keep the figures and write docs/explanation/accuracy.md")
    asked = parser.parse_args(arguments)
    found = {name: measure(name, asked.data) for name in asked.subject or subjects()}
    if asked.page:
        keep(found)
    if asked.json:
        print(json.dumps(found, indent=1))
    else:
        for name, one in found.items():
            print(f"# {name}: {one['title']}", *report.tables(one), sep="\n")
    return int(any(not t["is_met"] for one in found.values() for t in one["targets"]))


if __name__ == "__main__":
    raise SystemExit(main())
