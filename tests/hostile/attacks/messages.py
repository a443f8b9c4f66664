"""Messages that cost more than they weigh: large, full of empty items, or with templates."""

import asyncio

from hostile.attack import Attack, Sent
from hostile.callers import Caller
from hostile.lines import UnaryLine, frame_line, stream_line, unary_line
from hostile.stage import Stage
from hostile.wire import length_delimited, varint
from semel.coordinator.v1 import transactions_pb2 as transactions
from semel_common.wire.methods import (
    BROKER,
    END_TXN,
    FETCH,
    INIT_PRODUCER_ID,
    METADATA,
    PRODUCE,
    TRANSACTIONS,
)
from semel_local.layout import Role

LARGE_BYTES = 15 << 20
AT_ONCE = 8
CLAIMED_BYTES = 8 << 20
TEMPLATES = (
    "writer-{",
    "writer-{reason.__class__.__init__.__globals__[sys].modules[os].environ}",
    "writer-{epoch:300000000}",
    "writer-%(epoch)s %n %s",
    "writer-${epoch} \x00 ../../etc/passwd",
)
NOT_PROVEN = ("SASL_AUTHENTICATION_FAILED", "grpc:RESOURCE_EXHAUSTED", "grpc:UNAVAILABLE")


async def _send_many(line: UnaryLine, path: str, message: bytes, times: int, sent: Sent) -> None:
    async def some() -> None:
        for _ in range(times // AT_ONCE):
            sent.add(await line.call(path, message), len(message))

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(some(), name="attacker")


async def _large_without_token(stage: Stage, sent: Sent) -> None:
    message = length_delimited(2, bytes(LARGE_BYTES))
    async with unary_line(stage, stage.target(Role.BROKER).address, Caller.NOBODY) as line:
        await _send_many(line, PRODUCE.path, message, 40, sent)
    sent.expect(*NOT_PROVEN)


async def _empty_items(stage: Stage, sent: Sent) -> None:
    message = b"\x0a\x00" * (1 << 20)  # Field 1 is repeated in each of these requests.
    broker, coordinator = stage.target(Role.BROKER), stage.target(Role.COORDINATOR)
    for target, method in ((broker, PRODUCE), (broker, FETCH), (coordinator, METADATA)):
        for field in (b"\x0a\x00", b"\x12\x00", b"\x1a\x00"):
            data = field * (len(message) // 2)
            async with unary_line(stage, target.address, Caller.STRANGER) as line:
                sent.add(await line.call(method.path, data), len(data))


async def _empty_frames(stage: Stage, sent: Sent) -> None:
    message = b"\x0a\x00" * (4 << 20)
    address = stage.target(Role.BROKER).address
    async with frame_line(stage, address, BROKER, Caller.WRITER) as line:
        await line.send(message)
        answer = await line.receive(timeout_s=20)
        sent.add("closed" if answer is None else "OK", len(message))


async def _empty_frames_over_grpc(stage: Stage, sent: Sent) -> None:
    message = b"\x0a\x00" * (4 << 20)
    address = stage.target(Role.BROKER).address
    async with stream_line(stage, address, BROKER, Caller.WRITER) as call:
        await call.write(message)
        await call.done_writing()
        status = await call.code()
        sent.add(f"grpc:{status.name}", len(message))


async def _claims(stage: Stage, sent: Sent) -> None:
    partitions = b"\x12" + varint(CLAIMED_BYTES) + bytes(1_000)
    add_partitions = length_delimited(4, partitions)  # AddPartitionsToTxnRequest.topics
    frame = length_delimited(1, b"\x08\x01" + length_delimited(5, add_partitions))
    message = frame * (LARGE_BYTES // len(frame))
    address = stage.target(Role.COORDINATOR).address
    async with frame_line(stage, address, TRANSACTIONS, Caller.WRITER) as line:
        await line.send(message)
        answer = await line.receive(timeout_s=20)
        sent.add("closed" if answer is None else "OK", len(message))


async def _templates(stage: Stage, sent: Sent) -> None:
    address = stage.target(Role.COORDINATOR).address
    async with unary_line(stage, address, Caller.WRITER) as line:
        for name in TEMPLATES:
            init = transactions.InitProducerIdRequest(
                transactional_id=name,
                instance_id="instance",
                init_number=1,
                transaction_timeout_ms=60_000,
            )
            data = init.SerializeToString()
            result, answer = await line.answer(INIT_PRODUCER_ID.path, data)
            sent.add(result, len(data))
            given = transactions.InitProducerIdResponse.FromString(answer)
            for epoch in (given.producer_epoch, given.producer_epoch + 5, -1):
                end = transactions.EndTxnRequest(
                    transactional_id=name,
                    producer_id=given.producer_id,
                    producer_epoch=epoch,
                    result=2,  # type: ignore[arg-type]  # an abort
                )
                sent.add(await line.ask(END_TXN, end), end.ByteSize())
    sent.expect("OK", "PRODUCER_FENCED", "INVALID_REQUEST", "INVALID_TXN_STATE")


ATTACKS = (
    Attack(
        name="large-without-token",
        what="A client without a token sends the largest messages, eight at a time.",
        rpc=PRODUCE.name,
        transport="unary",
        caller=Caller.NOBODY,
        run=_large_without_token,
    ),
    Attack(
        name="many-empty-items",
        what="A client without any access rule sends requests of a million empty items.",
        rpc="Produce, Fetch, Metadata",
        transport="unary",
        caller=Caller.STRANGER,
        run=_empty_items,
    ),
    Attack(
        name="many-empty-frames",
        what="A writer sends one message of four million empty frames.",
        rpc="Stream",
        transport="frames over a socket",
        caller=Caller.WRITER,
        run=_empty_frames,
    ),
    Attack(
        name="many-empty-frames-over-grpc",
        what="A writer sends one message of four million empty frames.",
        rpc="Stream",
        transport="frames over gRPC",
        caller=Caller.WRITER,
        run=_empty_frames_over_grpc,
    ),
    Attack(
        name="lists-that-claim-too-much",
        what="A writer sends thousands of frames; each one's list claims the bytes of the others.",
        rpc="AddPartitionsToTxn",
        transport="frames over a socket",
        caller=Caller.WRITER,
        run=_claims,
    ),
    Attack(
        name="templates-in-names",
        what="A writer uses transactional ids that are format strings.",
        rpc="InitProducerId, EndTxn",
        transport="unary",
        caller=Caller.WRITER,
        run=_templates,
    ),
)
