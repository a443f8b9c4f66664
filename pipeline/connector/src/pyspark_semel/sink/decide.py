"""What the driver does: one decision for all tasks of a write."""

from collections.abc import Sequence

from aiosemel import JointOutcome, JointReceipt, ProducerOptions, SemelClient
from pyspark_semel.connection import connect
from pyspark_semel.sink.options import SinkOptions


def commit(options: SinkOptions, receipts: Sequence[JointReceipt]) -> None:
    """Commit what these tasks wrote, all at once; what others wrote aborts."""
    connection = connect(options.bootstrap)
    connection.call(_commit(connection.client, options, receipts))


def abort(options: SinkOptions, receipts: Sequence[JointReceipt]) -> None:
    """Abort, if any task says what; else the next run does, or the time-out."""
    if receipts:
        connection = connect(options.bootstrap)
        connection.call(_abort(connection.client, options, receipts))


async def _commit(
    client: SemelClient, options: SinkOptions, receipts: Sequence[JointReceipt]
) -> JointOutcome:
    joint = client.joint_transaction_of(
        receipts[0].handle, ProducerOptions(max_block_ms=options.max_block_ms)
    )
    async with joint:
        return await joint.commit(receipts)


async def _abort(
    client: SemelClient, options: SinkOptions, receipts: Sequence[JointReceipt]
) -> None:
    joint = client.joint_transaction_of(
        receipts[0].handle, ProducerOptions(max_block_ms=options.max_block_ms)
    )
    try:
        await joint.abort(receipts)
    finally:
        await joint.close()
