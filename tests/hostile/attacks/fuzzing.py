"""Requests of every RPC by grammar, as each kind of caller, over unary calls and frames."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from random import Random

from google.protobuf.message import Message

from hostile.attack import Attack, Run, Sent
from hostile.callers import Caller
from hostile.grammar import Grammar, Known
from hostile.lines import FrameLine, UnaryLine, frame_line, unary_line
from hostile.stage import TOPIC, Stage, Target
from semel_common.error_codes import ErrorCode
from semel_common.wire import methods
from semel_common.wire.frames.stream_messages import STREAMS, StreamTypes
from semel_common.wire.messages.message_pieces import Written
from semel_common.wire.methods import Method
from semel_local.layout import Role

QUICK_MESSAGES = 600
UNARY_AT_ONCE = 24
FRAMES_AT_ONCE = 64
BROKEN_SHARE = 0.05
"""Of the messages of frames: a service ends a connection whose frames it cannot read."""
CALL_TIMEOUT_S = 5.0
BROKE = ErrorCode.UNKNOWN_SERVER_ERROR.name
_OF = {
    Role.COORDINATOR: (methods.TRANSACTIONS, methods.CLUSTER),
    Role.BROKER: (methods.BROKER, methods.PARTICIPANT),
    Role.GROUP_COORDINATOR: (methods.GROUP, methods.PARTICIPANT),
}
_HARMFUL_BY_RIGHT = {methods.DECOMMISSION_INSTANCE.path, methods.REBALANCE_PARTITIONS.path}
"""An administrator may empty a cluster: the polite client would have a right to complain."""
_METHODS: Sequence[Method[Message, Message]] = tuple(
    var
    for var in vars(methods).values()
    if isinstance(var, Method) and var.path not in _HARMFUL_BY_RIGHT
)


class _Fuzzer:
    """Sends to one service."""

    def __init__(self, target: Target, role: Role, grammar: Grammar, random: Random) -> None:
        self.target = target
        self.answered = 0
        """Requests."""
        self._grammar = grammar
        self._random = random
        self._unary = [each for each in _METHODS if each.service in _OF[role]]
        self.service = next(each for each in _OF[role] if each in STREAMS)
        self._framed = [each for each in self._unary if each.stream == self.service]

    async def calls(self, line: UnaryLine, sent: Sent) -> None:
        """Send some unary calls at once."""

        async def one() -> None:
            method = self._random.choice(self._unary)
            data = self._grammar.request(method.request)
            result = await line.call(method.path, data, timeout_s=CALL_TIMEOUT_S)
            sent.add(result, len(data))
            self.answered += 1
            if result == BROKE:
                sent.violations.append(f"{method.name} broke: {data[:200]!r}")

        async with asyncio.TaskGroup() as group:
            for _ in range(UNARY_AT_ONCE):
                group.create_task(one(), name="attacker")

    async def frames(self, line: FrameLine, sent: Sent) -> bool:
        """Send one message of many frames; False if the service has ended the connection."""
        types = STREAMS[self.service]
        numbers = range(1, FRAMES_AT_ONCE + 1)
        message = b"".join(
            self._frame(types, number, self._grammar.whole_request) for number in numbers
        )
        if self._random.random() < BROKEN_SHARE:
            message += self._frame(types, FRAMES_AT_ONCE + 1, self._grammar.broken_request)
        await line.send(message)
        sent.size_bytes += len(message)
        waiting = FRAMES_AT_ONCE
        while waiting:
            answer = await line.receive(timeout_s=CALL_TIMEOUT_S * 2)
            if answer is None:
                sent.add("closed")
                return False
            for frame in types.parse_response(answer).frames:
                waiting -= 1
                self.answered += 1
                error = frame.error.code if frame.HasField("error") else 0
                sent.add(ErrorCode(error).name if error else "OK")
        return True

    def _frame(
        self, types: StreamTypes, number: int, written: Callable[[type[Message]], bytes]
    ) -> bytes:
        method = self._random.choice(self._framed)
        request = written(method.request)
        return b"".join(types.write_request(number, 2_000, method.field, Written((request,))))


def _fuzzing(caller: Caller, messages: int, seed: int) -> Run:
    async def run(stage: Stage, sent: Sent) -> None:
        random = Random(seed)
        known = await _known(stage)
        async with asyncio.TaskGroup() as group:
            for role in Role:
                fuzzer = _Fuzzer(stage.target(role), role, Grammar(random, known), random)
                group.create_task(_attack(stage, caller, fuzzer, messages // 3, sent), name=role)
        if sent.results[BROKE]:
            sent.violations.append(f"{sent.results[BROKE]} requests broke a handler")

    return run


async def _attack(stage: Stage, caller: Caller, fuzzer: _Fuzzer, messages: int, sent: Sent) -> None:
    address = fuzzer.target.address
    while fuzzer.answered < messages:
        async with AsyncExitStack() as stack:
            line = await stack.enter_async_context(unary_line(stage, address, caller))
            framed = None
            if caller is not Caller.NOBODY:
                framed = await stack.enter_async_context(
                    frame_line(stage, address, fuzzer.service, caller)
                )
            goes_on = True
            while fuzzer.answered < messages and goes_on:
                await fuzzer.calls(line, sent)
                if framed is not None:
                    goes_on = await fuzzer.frames(framed, sent)


_HELD_MAX_BYTES = 256 << 20
"""The allocator keeps up to 128 MiB of freed memory, and a broker's log tail has up to 32 MiB; the
rest is the state that a million requests leave: producers, groups, configurations."""


async def _known(stage: Stage) -> Known:
    async with stage.client(Caller.WRITER) as client:
        topic = await client.admin().describe_topic(TOPIC)
        ids = []
        for number in (1, 2):
            producer = client.transactional_producer(f"{Caller.WRITER}-{number}")
            await producer.init_transactions()
            ids.append(producer._transactions.manager.producer_id)
    return Known(topic_ids=(topic.topic_id,), producer_ids=ids)


def attacks(messages: int, seed: int = 0) -> tuple[Attack, ...]:
    """Return one attack for each caller, of so many messages."""
    return tuple(
        Attack(
            name=f"fuzzing-as-{caller}",
            what="The caller sends requests of every RPC with right, near and hostile values.",
            rpc="all",
            transport="unary and frames over a socket",
            caller=caller,
            run=_fuzzing(caller, messages, seed),
            held_max_bytes=_HELD_MAX_BYTES,
        )
        for caller in (Caller.NOBODY, Caller.WRITER, Caller.ADMINISTRATOR)
    )


ATTACKS = attacks(QUICK_MESSAGES)
