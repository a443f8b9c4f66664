"""Drives the SDK's operations against a liar, and watches how they end."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random

from aiosemel import ClientOptions, SemelClient, SemelError
from semel_common.wire import methods
from semel_local import LocalCluster
from untrusted.client_options import PRODUCERS
from untrusted.liar import Liar
from untrusted.operations import OPERATIONS
from untrusted.world import GROUP, PARTITION, TOPIC, World

OPERATION_TIMEOUT_S = 20.0
"""No operation takes longer: its options bound what it may take to a few seconds."""
GRACE_S = 1.0
"""How long a task that was cancelled may take to end."""
PROBABILITIES = (1.0, 0.6, 0.3, 0.1)
"""Of a lie: with few lies, operations get far before they meet one."""
METADATA_SHARE = 0.2
OPTIONS = ClientOptions(
    request_timeout_ms=300,
    default_api_timeout_ms=1_500,
    retry_backoff_ms=2,
    retry_backoff_max_ms=10,
)


@dataclass(slots=True)
class Result:
    """How a run went."""

    operations: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    by_rpc: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    """How operations ended: the name of the error's class, or "returned"."""
    violations: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    slowest: str = ""


async def drive(*, answers: int, seed: int, names: Iterable[str] = ()) -> Result:
    """Drive operations in turn until so many answers were given."""
    random, result = Random(seed), Result()
    wanted = sorted(names or OPERATIONS)
    async with LocalCluster() as cluster, AsyncExitStack() as stack:
        topic_id = await _prepare(cluster)
        liar = await stack.enter_async_context(Liar(upstream(cluster), random))
        liar.metadata_share = METADATA_SHARE
        logged = _Logged()
        logging.getLogger().addHandler(logged)
        stack.callback(logging.getLogger().removeHandler, logged)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: logged.add(f"loop: {context}"))
        stack.callback(loop.set_exception_handler, None)
        while liar.answers.total() < answers:
            name = wanted[result.operations % len(wanted)]
            liar.probability = random.choice(PROBABILITIES)
            await _one(name, liar, topic_id, result)
            result.violations += [f"{name} (seed {seed}): {text}" for text in logged.taken()]
        liar.probability = 0.0
        result.answers, result.by_rpc = liar.answers, liar.by_rpc
    return result


async def _prepare(cluster: LocalCluster) -> str:
    """Let there be a topic with records, a group with offsets, and ids with transactions."""
    async with cluster.client() as client:
        topic = await client.admin().create_topic(TOPIC, partitions=3)
        await client.admin().create_topic("results", partitions=1)
        async with client.producer(PRODUCERS) as producer:
            for number in range(6):
                await producer.send_and_wait(TOPIC, b"v%d" % number, partition=number % 2)
        for number in range(2):
            async with client.transactional_producer(f"txn-{number}") as transactional:
                await transactional.init_transactions()
                async with transactional.transaction() as transaction:
                    await transaction.send(TOPIC, b"t", partition=0)
        await client.admin().groups.alter_offsets(GROUP, {PARTITION: 2})
        return topic.topic_id


def upstream(cluster: LocalCluster) -> dict[str, str]:
    """Return the address of the real service of each gRPC service."""
    coordinator, broker, group = map(
        cluster.address, ("coordinator-0", "broker-0", "group-coordinator-0")
    )
    return {
        methods.TRANSACTIONS: coordinator,
        methods.CLUSTER: coordinator,
        methods.BROKER: broker,
        methods.PARTICIPANT: broker,
        methods.GROUP: group,
    }


async def _one(name: str, liar: Liar, topic_id: str, result: Result) -> None:
    """Run one operation with a client of its own; note how it ended."""
    result.operations += 1
    before = asyncio.all_tasks()
    began = time.perf_counter()
    try:
        async with asyncio.timeout(OPERATION_TIMEOUT_S):
            async with SemelClient(liar.address, options=OPTIONS) as client:
                await OPERATIONS[name](World(client, topic_id, result.operations))
        end = "returned"
    except SemelError as error:
        end = type(error).__name__
    except TimeoutError:
        end = "hung"
        result.violations.append(f"{name}: has not ended in {OPERATION_TIMEOUT_S} s")
    except Exception as error:  # noqa: BLE001 - a violation, which ends the run's success
        end = type(error).__name__
        result.violations.append(f"{name}: {_told(error)}")
    result.ends[end] += 1
    took = time.perf_counter() - began
    if took > result.slowest_s:
        result.slowest_s, result.slowest = took, name
    await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() - before if _is_client_task(task)]
    if left:
        _, pending = await asyncio.wait(left, timeout=GRACE_S)
        left = list(pending)
    if left:
        result.violations.append(f"{name}: left {[task.get_name() for task in left]}")


def _is_client_task(task: "asyncio.Task[object]") -> bool:
    """Whether a task is the client's, and not of the liar or of services in this process."""
    return not task.done() and task.get_name().startswith(_CLIENT_TASKS)


_CLIENT_TASKS = ("consumer", "producer", "produce", "retry", "find leaders", "connect", "frame")


def _told(error: BaseException) -> str:
    """Return an error on one line, with where it was raised."""
    if isinstance(error, BaseExceptionGroup):
        return f"{type(error).__name__} of {[_told(exception) for exception in error.exceptions]}"
    traceback, place = error.__traceback__, ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        place = f"{code.co_filename.rpartition('/')[2]}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return f"{type(error).__name__}: {str(error)[:200]} ({place})"


class _Logged(logging.Handler):
    """Keeps the errors that clients and asyncio log."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record of those whose loggers are the client's."""
        if record.name.startswith(("aiosemel", "semel_common", "asyncio", "grpc")):
            error = record.exc_info[1] if record.exc_info else None
            self.add(f"logged {record.getMessage()[:200]} {_told(error) if error else ''}")

    def add(self, text: str) -> None:
        """Keep a text."""
        self._texts.append(text)

    def taken(self) -> list[str]:
        """Return the kept texts, and forget them."""
        texts, self._texts = self._texts, []
        return texts
