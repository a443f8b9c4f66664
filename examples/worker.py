"""A worker: reads orders, and writes their income and the group's offsets in one transaction.

    semel up                                             # in another terminal
    semel topics create orders --partitions 4
    semel topics create income --partitions 4
    semel topics create orders-rejected
    python examples/worker.py                            # kill it at any point, and start it again
    echo '{"customer": "alice", "cents": 800}' | semel produce orders

Each order counts once, through every kill. An order that is no JSON, or has no price, goes to
`orders-rejected`, with the reason in a header; the other orders go on.

Run as many workers as the topic has partitions. Give each a name that it keeps over its restarts,
such as that of its pod in a StatefulSet (`--instance worker-0`): a restarted worker then has its
partitions at once, and finishes the transaction that the worker before it had left open.
"""

import argparse
import asyncio
import json
import logging
from collections.abc import Sequence

from aiosemel import ConsumerRecord, Outputs, SemelClient

ORDERS, INCOME, REJECTED = "orders", "income", "orders-rejected"

log = logging.getLogger("worker")


async def bill(orders: Sequence[ConsumerRecord], outputs: Outputs) -> None:
    """Write the income of some orders: the records of one transaction."""
    for order in orders:
        fields = json.loads(order.value or b"")
        customer, cents = str(fields["customer"]), int(fields["cents"])
        await outputs.send(INCOME, b"%d" % cents, key=customer.encode())


async def reject(order: ConsumerRecord, error: Exception, outputs: Outputs) -> None:
    """Write an order that cannot be billed elsewhere, as it came."""
    log.warning("order %d of partition %d: %r", order.offset, order.partition, error)
    headers = [*order.headers, ("error", repr(error).encode())]
    await outputs.send(REJECTED, order.value, key=order.key, headers=headers)


async def run(bootstrap: str, instance: str) -> None:
    """Work until SIGINT, SIGTERM or SIGHUP; the transaction in hand is finished first."""
    async with SemelClient(bootstrap) as client:
        worker = client.transform(
            source=[ORDERS],
            group="billing",
            transactional_id=instance,
            handler=bill,
            on_poison=reject,
        )
        log.info("working")
        await worker
        log.info("ended: %d orders, %d rejected", worker.stats.records_in, worker.stats.poisoned)


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a coordinator")
    parser.add_argument("--instance", default="worker-0", help="this worker's own name")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    asyncio.run(run(options.bootstrap, options.instance))


if __name__ == "__main__":
    main()
