"""`python -m semel_pipelines.proof`: a year of orders through both pipelines, under kills.

Starts Semel and a standalone cluster of Spark, lets the orders of a year come in, and kills
drivers, executors, brokers and the coordinator (kill -9) while both pipelines work. Ends with
status 1 unless everything adds up, to the cent.
"""

import argparse
import asyncio
import secrets
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from random import Random

from semel_cli.shared.output import Format, note, show
from semel_common.stop_signals import heeded_signals
from semel_local.errors import first_of
from semel_pipelines.proof import report
from semel_pipelines.proof.drivers import DriverError
from semel_pipelines.proof.picture import draw
from semel_pipelines.proof.run import Result, Run
from semel_pipelines.proof.spark_cluster import SparkClusterError
from semel_pipelines.proof.topics import OpenTransactionError

_EXPECTED = (DriverError, SparkClusterError, OpenTransactionError)
_INTERRUPTED = 130


def main() -> int:
    """Run it, show what came out, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m semel_pipelines.proof", description=(__doc__ or "").partition("\n\n")[2]
    )
    parser.add_argument(
        "--seed", type=int, help="seed of the plan of kills (default: a random one)"
    )
    parser.add_argument("--data", type=Path, help="keep data and logs in this new folder")
    parser.add_argument("--picture", type=Path, default=Path("build/pizza-income.png"))
    arguments = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if arguments.seed is None else arguments.seed
    note(f"Seed {seed}: python -m semel_pipelines.proof --seed {seed} makes the same plan again")
    folder = arguments.data or Path(tempfile.mkdtemp(prefix="semel-pipeline-"))
    try:
        result = asyncio.run(_run(Run(folder, Random(seed))))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return _INTERRUPTED
    except BaseExceptionGroup as group:
        failed = group.subgroup(_EXPECTED)
        if failed is None:
            raise
        note(str(first_of(failed)))
        return 1
    except _EXPECTED as error:
        note(str(error))
        return 1
    draw(result.found.closed, result.found.open, arguments.picture)
    facts = report.facts(result, arguments.picture, folder)
    show(Format.TEXT, None, report.income_table(result), facts)
    if result.differences:
        return 1
    if arguments.data is None:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


async def _run(run: Run) -> Result:
    """Treat SIGTERM and SIGHUP as Ctrl-C: cancel, so that no process is left behind."""
    task = asyncio.current_task()
    assert task is not None
    for number in set(heeded_signals()) - {signal.SIGINT}:  # That is for asyncio.run.
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await run.run()


if __name__ == "__main__":
    sys.exit(main())
