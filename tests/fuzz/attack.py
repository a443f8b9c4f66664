"""An attack: hostile messages at all services, and a client among them that must notice nothing."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import NoReturn

import structlog
from google.protobuf.message import DecodeError, Message
from structlog import DropEvent
from structlog.typing import EventDict

from fuzz.cluster import Cluster, Sample, Samples
from fuzz.frames import attack_stream
from fuzz.mutation import broken, edited
from fuzz.work import OF_MOVES, leave_open, ordinary_work, victim_of
from semel_common.errors import SemelError, UnknownServerError
from semel_runtime.authentication.principal import Origin
from semel_runtime.server.calls import Call
from semel_runtime.server.handler_call import answer
from semel_runtime.testing.virtual_time import run_in_virtual_time

ROUND = 500
"""So many messages go out between two transactions of the client that is no part of this."""
AT_ONCE = 50
STREAMS_EACH_ROUND = 4
PATIENCE_S = 30.0
"""How long a call may take, in virtual time, that has no deadline or sets one beyond all bounds."""
RESPONSE_MAX_BYTES = 64 * 1024 * 1024
OF_SERVICES = frozenset(
    (
        "RegisterInstance",
        "WriteTxnMarkers",
        "InquireTransactions",
        "CompletePartitionReassignment",
        *(method.name for method in OF_MOVES),
    )
)
"""The calls between services: registrations, transaction outcomes, and moves."""


@dataclass(slots=True)
class Result:
    """The answers to the messages."""

    answers: Counter[str] = field(default_factory=Counter)
    """By the name of the error; OK for a response, UNREADABLE for bytes that are no request."""
    frames: int = 0
    """How many frames went over streams, beside the messages."""
    violations: list[str] = field(default_factory=list)

    def note(self, _logger: object, _level: str, entry: EventDict) -> NoReturn:
        """Count log entries with a traceback: a handler broke. A processor of structlog."""
        if "exc_info" in entry:
            self.violations.append(f"logged: {entry}")
        raise DropEvent


def attack(*, messages: int, seed: int) -> Result:
    """Do as hostile clients do. The same seed gives the same messages."""
    return run_in_virtual_time(_attack(messages, Random(seed)))


def attack_from_within(*, messages: int, seed: int) -> Result:
    """Do as a hostile service does: it may harm its cluster, but break no handler."""
    return run_in_virtual_time(_attack_from_within(messages, Random(seed)))


async def _attack(messages: int, random: Random) -> Result:
    result = Result()
    async with AsyncExitStack() as stack:
        stack.enter_context(_logging_to(result))
        cluster = await stack.enter_async_context(Cluster(random).started())
        client = await stack.enter_async_context(cluster.client())
        victim = await stack.enter_async_context(victim_of(cluster))
        for number in range(0, messages, ROUND):
            await ordinary_work(client, f"round-{number}", cluster.network)
            cluster.keeping = False
            samples = cluster.samples_of(lambda method: method.name not in OF_SERVICES)
            await _send(cluster, samples, min(ROUND, messages - number), random, result)
            for _ in range(STREAMS_EACH_ROUND):
                frames, broke = await attack_stream(cluster, samples, random)
                result.frames += frames
                result.violations.extend(broke)
            await victim.go_on()
            cluster.keeping = True
    return result


async def _attack_from_within(messages: int, random: Random) -> Result:
    result = Result()
    async with AsyncExitStack() as stack:
        stack.enter_context(_logging_to(result))
        cluster = await stack.enter_async_context(Cluster(random).started())
        client = await stack.enter_async_context(cluster.client())
        await ordinary_work(client, "work", cluster.network)
        await leave_open(client, "work")
        cluster.keeping = False
        samples = cluster.samples_of(lambda method: method.name in OF_SERVICES)
        await _send(cluster, samples, messages, random, result)
    return result


@contextmanager
def _logging_to(result: Result) -> Iterator[None]:
    """Let everything that is logged go to a result: kept, it would be more than all else."""
    processors = structlog.get_config()["processors"]
    before = processors.copy()
    processors[:] = [result.note]  # In place: loggers that exist already know this list.
    try:
        yield
    finally:
        processors[:] = before


async def _send(
    cluster: Cluster, samples: Samples, messages: int, random: Random, result: Result
) -> None:
    for start in range(0, messages, AT_ONCE):
        some = min(AT_ONCE, messages - start)
        await asyncio.gather(*(_one(cluster, random, samples, result) for _ in range(some)))


async def _one(cluster: Cluster, random: Random, samples: Samples, result: Result) -> None:
    """Send one message."""
    of_method = random.choice(samples)
    sample = random.choice(of_method)
    request = _hostile(sample, of_method, random)
    if request is None:
        result.answers["UNREADABLE"] += 1
        return
    endpoint = cluster.handlers[sample.address].find(sample.method.path)
    assert endpoint is not None
    name = sample.method.name
    deadline = asyncio.get_running_loop().time() + random.choice((0.0, 0.05, 5.0))
    try:
        async with asyncio.timeout(PATIENCE_S):
            response = await answer(
                endpoint, request, Call(origin=Origin(listener="default"), deadline=deadline)
            )
    except TimeoutError:
        result.violations.append(f"{name} was not answered: {_shown(request)}")
    except UnknownServerError as error:
        result.violations.append(f"{name} broke a handler: {error}: {_shown(request)}")
    except SemelError as error:
        result.answers[error.code.name] += 1
    else:
        result.answers["OK"] += 1
        if len(response.SerializeToString()) > RESPONSE_MAX_BYTES:
            result.violations.append(f"{name} has a huge answer: {_shown(request)}")


def _hostile(sample: Sample, of_method: Sequence[Sample], random: Random) -> Message | None:
    """Return a changed request; None if its bytes are no longer a request."""
    parse = sample.method.request.FromString
    if random.random() < 0.3:  # most change fields, for these get further
        try:
            return parse(broken(sample.data, random))
        except DecodeError:
            return None
    others = [parse(each.data) for each in random.sample(list(of_method), min(3, len(of_method)))]
    return edited(parse(sample.data), others, random)


def _shown(request: Message) -> str:
    return repr(request)[:2_000]
