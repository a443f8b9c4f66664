"""`python -m bench.growth [CURVE…]`: measure curves; `bench.growth.docs` writes them down."""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from bench.growth.curve import Curve, Point
from bench.growth.curves import CURVES
from bench.growth.curves.log_size import LOG_SIZE, NoRoomError
from bench.growth.report import table
from bench.growth.results import Result, taken_now, write_results

_OUTPUT = Path("build/growth.json")


def main() -> None:
    """Measure what the arguments name, or all."""
    arguments = _arguments()
    curves = {**CURVES, LOG_SIZE.name: _up_to(LOG_SIZE, arguments.log_gb)}
    chosen = [curves[name] for name in arguments.curves or curves]
    try:
        asyncio.run(_run(chosen, arguments.folder, arguments.output))
    except NoRoomError as error:
        sys.exit(str(error))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("curves", nargs="*", metavar="CURVE", help=", ".join(CURVES))
    parser.add_argument(
        "--log-gb",
        type=float,
        default=max(LOG_SIZE.sizes),
        help="the largest log; default: %(default)s",
    )
    parser.add_argument("--folder", type=Path, help="where clusters keep their data; default: /tmp")
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="JSON; default: %(default)s")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.curves if name not in CURVES]
    if unknown:
        parser.error(f"unknown curve: {', '.join(unknown)}; there is {', '.join(CURVES)}")
    if arguments.log_gb < min(LOG_SIZE.sizes):
        parser.error(f"--log-gb is {arguments.log_gb:g}, less than {min(LOG_SIZE.sizes):g}")
    if arguments.folder is not None and not arguments.folder.is_dir():
        parser.error(f"--folder is no folder: {arguments.folder}")
    return arguments


async def _run(curves: Sequence[Curve], folder: Path | None, output: Path) -> None:
    for curve in curves:
        started = time.monotonic()
        points = await _measure(curve, folder)
        result = Result(curve=curve.name, taken=taken_now(), points=tuple(points))
        write_results(output, result)
        Console().print(table(curve, result))
        print(f"{curve.name}: {time.monotonic() - started:.0f} s", flush=True)


async def _measure(curve: Curve, folder: Path | None) -> list[Point]:
    points = []
    with tempfile.TemporaryDirectory(dir=folder, prefix="semel-growth-") as its_folder:
        async for point in curve.measure(curve.sizes, Path(its_folder)):
            print(f"{curve.name}: measured at {point.size:g}", file=sys.stderr, flush=True)
            points.append(point)
    return points


def _up_to(curve: Curve, most: float) -> Curve:
    """Return a curve that ends with this size."""
    return replace(curve, sizes=(*(size for size in curve.sizes if size < most), most))


if __name__ == "__main__":
    main()
