"""What refusing each bad pack costs: processor time of the best of three loads, the slowest first.

python -m benchmarks.hostile
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from stabilitykit.compiled.program import build_program
from stabilitykit.detectors import DETECTORS
from stabilitykit.errors import PackError
from stabilitykit.rules.load import load_pack
from tests.hostile.families import FAMILIES
from tests.hostile.test_packs import PACKS

SHOWN = 12


def refuse(path: Path) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        try:
            build_program(load_pack(str(path), detectors=DETECTORS))
        except PackError as error:
            str(error)
        best = min(best, time.process_time() - start)
    return best * 1e3


def main() -> None:
    times = {path.name: refuse(path) for path in sorted(PACKS.glob("*.yaml"))}
    with tempfile.TemporaryDirectory() as folder:
        for name, (_, text) in FAMILIES.items():
            path = Path(folder, "hostile.yaml")
            path.write_text(text(), encoding="utf-8")
            times[name] = refuse(path)
    for name in sorted(times, key=times.__getitem__, reverse=True)[:SHOWN]:
        print(f"{times[name]:6.0f} ms  {name}")


if __name__ == "__main__":
    main()
