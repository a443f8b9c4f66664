"""``python -m tracing --jaeger PROGRAM``: a killed coordinator's transaction in a real Jaeger.

Starts Jaeger, lets the story happen in real processes that export to it, asks its query API for the
traces, and checks them; exit status 1 if anything is missing.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import uvloop

from semel_common.telemetry.span_export import open_telemetry
from semel_local.jaeger import Jaeger
from tracing.checks import check_reading, check_transaction
from tracing.jaeger import fetch
from tracing.spans import Trace
from tracing.story import APPLICATION, Story, tell

_WAIT_S = 20.0
_PAUSE_S = 0.5


def main() -> int:
    """Run, and print the spans."""
    parser = argparse.ArgumentParser(prog="tracing", description=__doc__)
    parser.add_argument("--jaeger", type=Path, required=True, help="Jaeger all-in-one, version 1")
    parser.add_argument("--keep", action="store_true", help="leave Jaeger open until Ctrl-C")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="semel-traces-") as folder:
        return uvloop.run(_run(Path(folder), options.jaeger, keep=options.keep))


async def _run(folder: Path, program: Path, *, keep: bool) -> int:
    async with Jaeger(program, folder / "jaeger.log") as jaeger:
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = jaeger.otlp
        os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "200"
        telemetry = open_telemetry(os.environ, APPLICATION)
        assert telemetry is not None, "there is an endpoint"
        story = await tell(folder / "cluster", telemetry)
        await telemetry.aclose()
        problems = await _check(jaeger, story)
        for name, trace_id in (("whole", story.whole), ("interrupted", story.interrupted)):
            print(f"\n{name}: {jaeger.ui}/trace/{trace_id}")
            print("\n".join(f"    {line}" for line in (await fetch(jaeger.ui, trace_id)).lines()))
        print(f"\nread: {jaeger.ui}/trace/{story.reading}")
        for problem in problems:
            print(f"MISSING {problem}")
        print(f"verdict: {len(problems)} missing" if problems else "verdict: all of it is there")
        if keep:
            print("Jaeger stays open until Ctrl-C")
            await _until_cancelled()
        else:
            print("Jaeger ends here, with its links: `make trace-demo KEEP=1` leaves it open")
    return bool(problems)


async def _check(jaeger: Jaeger, story: Story) -> list[str]:
    """Ask until all spans are there: the last exported ones may not be stored yet."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _WAIT_S
    while True:
        whole, interrupted, reading = [
            await fetch(jaeger.ui, each) for each in (story.whole, story.interrupted, story.reading)
        ]
        problems = _problems(whole, interrupted, reading)
        if not problems or loop.time() > deadline:
            return problems
        await asyncio.sleep(_PAUSE_S)


def _problems(whole: Trace, interrupted: Trace, reading: Trace) -> list[str]:
    return [
        *(f"in the whole transaction: {each}" for each in check_transaction(whole)),
        *(
            f"in the interrupted one: {each}"
            for each in check_transaction(interrupted, killed=True)
        ),
        *check_reading(reading, whole, interrupted),
    ]


async def _until_cancelled() -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
