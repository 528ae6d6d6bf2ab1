"""``stabilitykit kv``: what a KV cache would have hit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from stabilitykit.cli.output import note, record, table
from stabilitykit.cli.progress import counting, reading
from stabilitykit.errors import UsageError
from stabilitykit.mitigations.kv import POLICIES
from stabilitykit.mitigations.kv.simulate import Simulated, simulate
from stabilitykit.mitigations.kv.trace import Trace, read_trace

__all__ = ["app"]

app = typer.Typer(help="What a KV cache would have hit.", no_args_is_help=True, rich_markup_mode=None)
SHARES = ("1%", "5%", "10%", "25%")


@app.callback()
def group() -> None:
    """Keep `simulate` a command of its own, although it is the only one so far."""


@app.command("simulate")
def simulate_command(
    file: Annotated[
        Path, typer.Argument(metavar="TRACE", help="Mooncake's JSON lines, or the block ids of one request a line.")
    ],
    policies: Annotated[
        list[str] | None, typer.Option("--policy", "-p", metavar="NAME", help=f"Of {', '.join(POLICIES)} [all].")
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option("--size", "-s", metavar="N|N%", help=f"Blocks, or a share of all [{', '.join(SHARES)}]."),
    ] = None,
    is_flat: Annotated[bool, typer.Option("--flat", help="A cache of single blocks, without the prefix tree.")] = False,
    is_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    report: Annotated[
        Path | None, typer.Option("--report", metavar="OUT.html", help="Write one self-contained HTML file.")
    ] = None,
) -> None:
    """Replay a trace through cache policies: hit ratios by policy and size, with Belady's bound (`belady`)."""
    unknown = [name for name in policies or () if name not in POLICIES]
    if unknown:
        raise UsageError(f"--policy: {unknown[0]!r} is none of {', '.join(POLICIES)}")
    if report is not None and not report.parent.is_dir():
        raise UsageError(f"--report: no directory {report.parent}")
    with reading([file]) as progress:
        trace = read_trace(file, progress)
    trace = trace.flat() if is_flat else trace
    distinct = trace.distinct
    capacities = sorted({_size(text, distinct) for text in sizes or SHARES})
    names = list(dict.fromkeys(policies or POLICIES))
    with counting(len(names) * len(capacities) * len(trace.blocks), "simulating") as done:
        found = list(simulate(trace, names, capacities, progress=done))
    if is_json:
        record(_as_dict(file, trace, distinct, found))
    else:
        note(f"{len(trace):,} requests, {len(trace.blocks):,} blocks, {distinct:,} different")
        rows = [[name, *(f"{100 * ratio:.2f} %" for ratio in _ratios(found, name))] for name in names]
        table(["policy", *(f"{size:,}" for size in capacities)], [list(row) for row in rows])
    if report is not None:
        _write(report, file, trace, distinct, capacities, {name: _ratios(found, name) for name in names})


def _size(text: str, distinct: int) -> int:
    """Read a size: blocks, or a share of the different blocks of the trace."""
    try:
        size = int(distinct * float(text[:-1]) / 100) if text.endswith("%") else int(text)
    except (ValueError, OverflowError):
        size = -1
    if size < 0 or size > 1 << 26:
        raise UsageError(f"--size: {text!r} is neither a number of blocks nor a share like 5%")
    return max(size, 1)


def _ratios(found: Sequence[Simulated], policy: str) -> list[float]:
    return [one.hit_ratio for one in found if one.policy == policy]


def _as_dict(file: Path, trace: Trace, distinct: int, found: Sequence[Simulated]) -> dict[str, Any]:
    return {
        "trace": str(file),
        "requests": len(trace),
        "blocks": len(trace.blocks),
        "distinct": distinct,
        "results": [
            {
                "policy": one.policy, "capacity": one.capacity, "hits": int(one.hits.sum()),
                "hit_ratio": round(one.hit_ratio, 6),
            }
            for one in found
        ],
    }  # fmt: skip


def _write(
    path: Path, file: Path, trace: Trace, distinct: int, sizes: Sequence[int], ratios: dict[str, list[float]]
) -> None:
    from stabilitykit.cli.report.ratios import render_ratios

    text = (
        f"Hit ratio by cache size in blocks: {len(trace):,} requests, {len(trace.blocks):,} blocks, {distinct:,} "
        "different. A block counts when all that come before it are cached too."
    )
    try:
        path.write_text(render_ratios(file.name, text, sizes, ratios), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--report: {path}: {error.strerror or type(error).__name__}") from None
    note(f"report: {path}")
