"""Several processes write one result: readers see all of it at once, or none of it.

    semel up                                             # in another terminal
    semel topics create load --partitions 4
    python examples/joint_writer.py 1                    # kill it at any point, and start it again
    semel consume load --from-beginning

A load has a number, its version. The owner opens a joint transaction for it, and starts a process
for each part. A part gets the transaction's handle, writes its rows, and answers a receipt; handle
and receipt are text, so parts may run on other machines. The owner commits the receipts: this is
the one moment at which the rows of all parts become visible.

A part that fails leaves nothing behind: the owner starts it again, and names the new receipt alone.
The next start of an owner that was killed takes the version over; a signal aborts it. A version
that is committed already is not written again.
"""

import argparse
import asyncio
import logging
import signal
import sys

from aiosemel import JointHandle, JointReceipt, SemelClient

TOPIC, TRANSACTIONAL_ID, OWNER = "load", "load", "joint_writer.py"
PARTS, ROWS, ATTEMPTS_MAX = 3, 1_000, 3

log = logging.getLogger("load")


async def load(bootstrap: str, version: int) -> None:
    """Own one version: start its parts, and commit their receipts; a signal aborts it."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    async with (
        SemelClient(bootstrap) as client,
        client.joint_transaction(TRANSACTIONAL_ID, version, owner=OWNER) as joint,
    ):
        log.info("loading")
        handle = joint.handle.to_json()
        receipts = await asyncio.gather(
            *(run_part(bootstrap, version, part, handle) for part in range(PARTS))
        )
        outcome = await joint.commit(map(JointReceipt.from_json, receipts))
        log.info("version %d: %s", version, outcome)


async def run_part(bootstrap: str, version: int, part: int, handle: str) -> str:
    """Return the receipt of a part; a part that fails is started again."""
    command = (sys.executable, __file__, str(version), "--bootstrap", bootstrap)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        process = await asyncio.create_subprocess_exec(
            *command,
            "--part",
            str(part),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            receipt, _ = await process.communicate(handle.encode())
        except asyncio.CancelledError:
            process.kill()
            raise
        if process.returncode == 0:
            return receipt.decode()
        log.warning("part %d, attempt %d: status %s", part, attempt, process.returncode)
    raise SystemExit(f"part {part} has failed {ATTEMPTS_MAX} times")


async def write_part(bootstrap: str, version: int, part: int, handle: str) -> str:
    """Write the rows of one part; returns the receipt."""
    async with (
        SemelClient(bootstrap) as client,
        client.join(JointHandle.from_json(handle), name=f"part-{part}") as writer,
    ):
        if not writer.already_committed:
            rows = [b"version %d, part %d, row %d" % (version, part, row) for row in range(ROWS)]
            await writer.send_columns(TOPIC, rows)
        return (await writer.finish()).to_json()


def main() -> None:
    """Read the command line, and run: the owner, or a part that the owner has started."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", type=int, help="number of the load; rises from load to load")
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a coordinator")
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if options.part is None:
        try:
            asyncio.run(load(options.bootstrap, options.version))
        except asyncio.CancelledError:
            sys.exit(f"version {options.version} is aborted: start it again")
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner.
        part = write_part(options.bootstrap, options.version, options.part, sys.stdin.read())
        print(asyncio.run(part))


if __name__ == "__main__":
    main()
