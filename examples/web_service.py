"""A web service that takes every order exactly once, with many requests at the same time.

    semel up                                             # in another terminal
    semel topics create orders
    semel topics create receipts --config cleanup.policy=compact
    python examples/web_service.py                       # kill it at any point, and start it again
    curl -i -H 'Idempotency-Key: 7f3a' -d '{"pizza": "napoli"}' http://127.0.0.1:8000/orders

Each order is a transaction of two records, the order and its receipt, so that neither is there
without the other. A producer has one transaction at a time: that is why requests share a pool of
eight.

The pool alone takes each *request* once. A caller without an answer, because the service or the
network went away, does not know whether the order was taken, and sends it again. So a caller names
each order with an Idempotency-Key of its own, the same in every attempt. The receipts are a table
by these keys: the service reads it when it starts, and answers a repeat with the stored receipt. It
reads after the pool is open, when the open transactions of the process before it are decided, and
up to the end of all stored records: a receipt may still be hidden behind a transaction of another
program, or behind one whose end the partition has not heard of yet.

To run several of these, give each a name that it keeps over its restarts, such as that of its pod
in a StatefulSet (`--instance web-0`), and let the load balancer choose by the Idempotency-Key: a
repeat must reach the instance that had the order first. Where that cannot be, keep the keys in a
database: two_phase_commit.py.
"""

import argparse
import asyncio
import json
import logging
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from aiosemel import (
    ConsumerOptions,
    IsolationLevel,
    KnownOutcome,
    OffsetReset,
    ProducerOptions,
    SemelClient,
    SemelError,
    TopicPartition,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
    TransactionPool,
)

ORDERS, RECEIPTS = "orders", "receipts"
POOL_SIZE = 8
ANSWER_TIMEOUT_S = 20
PRODUCER = ProducerOptions(max_block_ms=15_000)

log = logging.getLogger("web")


class Orders:
    """Takes orders, each once, however often it is sent."""

    def __init__(self, pool: TransactionPool, receipts: dict[str, bytes]) -> None:
        self.pool = pool
        self._receipts = receipts
        self._under_way: dict[str, asyncio.Task[bytes]] = {}

    async def take(self, key: str, order: bytes) -> bytes:
        """Return the receipt of an order. After SemelError it was not taken: send it again."""
        if key in self._receipts:
            return self._receipts[key]
        if key not in self._under_way:
            self._under_way[key] = asyncio.create_task(self._send(key, order))
        # The order goes on when its request is over: a repeat finds out what became of it.
        return await asyncio.shield(self._under_way[key])

    async def _send(self, key: str, order: bytes) -> bytes:
        receipt = json.dumps({"number": str(uuid.uuid4()), "order": json.loads(order)}).encode()
        try:
            await self._commit(key.encode(), order, receipt)
            self._receipts[key] = receipt
        finally:
            del self._under_way[key]
        return receipt

    async def _commit(self, key: bytes, order: bytes, receipt: bytes) -> None:
        try:
            async with self.pool.transaction() as transaction:
                await transaction.send(ORDERS, order, key=key)
                await transaction.send(RECEIPTS, receipt, key=key)
        except TransactionOutcomeUnknownError as unknown:
            known = await unknown.resolve()  # Never taken for an abort: the order may be there.
            if known.outcome is not KnownOutcome.COMMITTED:
                raise TransactionAbortedError(f"the order {key!r} is {known.outcome}") from unknown


async def read_receipts(client: SemelClient) -> dict[str, bytes]:
    """Return all receipts by their keys; wait for receipts that are not visible yet."""
    described = await client.admin().describe_topic(RECEIPTS)
    places = [TopicPartition(RECEIPTS, partition.partition) for partition in described.partitions]
    receipts: dict[str, bytes] = {}
    everything = ConsumerOptions(isolation_level=IsolationLevel.READ_UNCOMMITTED)
    async with client.consumer(options=everything) as consumer:
        ends = await consumer.end_offsets(places)
    log.info("reading the receipts of %d partitions", len(ends))
    committed = ConsumerOptions(auto_offset_reset=OffsetReset.EARLIEST)
    async with client.consumer(options=committed) as consumer:
        consumer.assign(places)
        while any(consumer.positions().get(place, 0) < ends[place] for place in places):
            for records in (await consumer.poll(timeout_ms=500)).values():
                receipts |= {
                    (record.key or b"").decode(): record.value or b"" for record in records
                }
    return receipts


def service(bootstrap: str, instance: str | None) -> Starlette:
    """Return the web service; it opens its pool when it starts."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with (
            SemelClient(bootstrap) as client,
            client.transactions(
                "orders", size=POOL_SIZE, instance=instance, producer_options=PRODUCER
            ) as pool,
        ):
            app.state.orders = Orders(pool, await read_receipts(client))
            yield

    return Starlette(
        routes=[
            Route("/orders", post_order, methods=["POST"]),
            Route("/health", get_health),
        ],
        lifespan=lifespan,
    )


async def post_order(request: Request) -> Response:
    """Take an order; after 503 its outcome is unknown: send it again, by the same key."""
    orders: Orders = request.app.state.orders
    key = request.headers.get("Idempotency-Key")
    if not key:
        return refusal(400, "the order has no Idempotency-Key")
    order = await request.body()
    try:
        json.loads(order)
    except ValueError as error:
        return refusal(400, f"the order is no JSON: {error}")
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            receipt = await orders.take(key, order)
    except TimeoutError:
        return refusal(503, f"the order {key!r} is still under way")
    except SemelError as error:
        log.warning("order %s was not taken: %s", key, error)
        return refusal(503, str(error))
    return Response(receipt, status_code=201, media_type="application/json")


async def get_health(request: Request) -> Response:
    """Say whether orders are taken; 503: another process has taken over, so this one is done."""
    error = request.app.state.orders.pool.error
    return JSONResponse({"ok": True}) if error is None else refusal(503, str(error))


def refusal(status: int, error: str) -> Response:
    """Return an answer that says what is wrong."""
    headers = {"Retry-After": "1"} if status == 503 else {}  # noqa: PLR2004 - HTTP's
    return JSONResponse({"error": error}, status_code=status, headers=headers)


def end_in_order() -> None:
    """Let SIGTERM and SIGHUP do what Ctrl-C does: finish the requests, then end with status 0.

    While it serves, uvicorn takes SIGTERM itself, and sends it once more when all is closed.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))


def main() -> None:
    """Read the command line, and serve."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a coordinator")
    parser.add_argument("--port", type=int, default=8000, help="to serve at; 0: a free one")
    parser.add_argument("--instance", help="a name that no other process has at the same time")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    end_in_order()
    uvicorn.run(service(options.bootstrap, options.instance), port=options.port, log_config=None)


if __name__ == "__main__":
    main()
