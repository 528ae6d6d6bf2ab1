"""Detectors that exist only to be many: written by a loop, fifteen lines each, no two alike."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from stabilitykit.signals import DetectorSpec, Layout, OutputSpec

HEAD = "from __future__ import annotations\n\nimport math\nfrom typing import Any\n\n"
HEAD += "from stabilitykit.kernels import kernel\n"
BODY = '''

@kernel
def dummy_{k}(x: Any, f: Any, h: Any, w: Any, v: Any, c: Any, io: Any, arr: Any, ids: Any, n: Any) -> int:
    """Mean, deviation and run length of one number, in a form of its own."""
    value, out = x[io[0]], io[1]
    x[out] = math.nan
    x[out + 1] = math.nan
    if math.isnan(value):
        return 0
    seen = f[0] + 1.0
    step = value - f[1]
    f[0] = min(seen, {limit}.0)
    f[1] += step / min(seen, c[0] + {k}.0)
    f[2] = max(f[2] * {decay}, abs(step){extra})
    h[0] = h[0] + 1 if step > f[2] * 0.5 else 0
    if seen > {warmup}.0:
        x[out] = f[1] + math.sqrt(f[2] + {k}.0)
        x[out + 1] = 1.0 if h[0] >= {run} else 0.0
    return 0
'''
EXTRAS = ("", " + 0.5 * f[1]", " * 1.25", " + c[0]", " - 0.125 * f[2]")


def module(folder: Path, count: int):
    """Write and import a module of so many detectors."""
    path = folder / "dummies_made.py"
    bodies = [
        BODY.format(k=k, limit=20 + k, decay=0.5 + k / 128, extra=EXTRAS[k % 5], warmup=k % 7, run=1 + k % 5)
        for k in range(count)
    ]
    path.write_text(HEAD + "".join(bodies))
    found = importlib.util.spec_from_file_location("dummies_made", path)
    assert found is not None
    assert found.loader is not None
    made = importlib.util.module_from_spec(found)
    sys.modules["dummies_made"] = made
    found.loader.exec_module(made)
    return made


def specs(folder: Path, count: int) -> dict[str, DetectorSpec]:
    made = module(folder, count)
    return {
        f"dummy_{k}": DetectorSpec(
            type=f"dummy_{k}",
            doc="a dummy",
            inputs={"input": ""},
            settings=(),
            outputs=(
                OutputSpec("level_ms", "ms", "a level", "number"),
                OutputSpec("is_high", "bool", "is it high", "bool"),
            ),
            kernel=getattr(made, f"dummy_{k}"),
            layout=lambda settings: Layout(f8=3, u4=1),
            config=lambda settings: (8.0,),
        )
        for k in range(count)
    }
