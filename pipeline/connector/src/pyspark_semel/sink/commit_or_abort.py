"""The driver's decision: one commit or one abort for all tasks of a write, done once."""

import logging
from collections.abc import Sequence

from aiosemel import JointHandle, JointOutcome, JointReceipt, SemelClient
from aiosemel.errors import SemelError, TransactionalIdNotFoundError
from pyspark_semel.errors import TransactionError
from pyspark_semel.preflight import connect_to, unreachable_named
from pyspark_semel.settings import flush_spans
from pyspark_semel.sink.options import TRANSACTIONAL_ID, SinkOptions

_log = logging.getLogger(__name__)


def commit(options: SinkOptions, receipts: Sequence[JointReceipt]) -> None:
    """Commit the records of these tasks, all at once, and abort those of all others.

    When it returns, readers see all of it, or do so some seconds later, if the process of a task
    was killed in the moment of a send. Done again, it does nothing. Raises TransactionError for a
    write that is no repeat and still cannot be made, because its version or a later one is
    committed.
    """
    connection = connect_to(options, receipts[0].handle.cluster_id or options.cluster_id)
    try:
        with unreachable_named(options):
            connection.call(_commit(connection.client, options, receipts))
    finally:
        flush_spans()


def abort(
    options: SinkOptions, receipts: Sequence[JointReceipt], expected: JointHandle | None = None
) -> None:
    """Abort an uncommitted transaction.

    The receipts of the tasks name the transaction. Without a receipt, it is ``expected``, if this
    write has that transaction open. Without either, the next run aborts it, or its time-out.
    """
    handle = receipts[0].handle if receipts else expected
    if handle is None:
        return
    connection = connect_to(options, handle.cluster_id or options.cluster_id)
    connection.call(_abort(connection.client, options, handle, receipts))


async def _commit(
    client: SemelClient, options: SinkOptions, receipts: Sequence[JointReceipt]
) -> None:
    handle = receipts[0].handle
    async with client.joint_transaction_of(handle, options.producer) as joint:
        outcome = await joint.commit(receipts, wait_until_visible=True)
        in_run = joint.repeated_in_run
    if outcome is JointOutcome.ALREADY_COMMITTED and options.txn_version is None:
        await _check_repeat(client, receipts[0], in_run=in_run)


async def _check_repeat(client: SemelClient, receipt: JointReceipt, *, in_run: bool) -> None:
    """Raise TransactionError unless this is the micro-batch that was written last, done again.

    Spark repeats only that one, after a restart, with the same rows, and once: ``in_run`` says that
    the run has committed it before, written or repeated.
    """
    handle = receipt.handle
    described = await client.admin().describe_transactions(handle.transactional_id)
    assert described.joint is not None, "an id with a committed version is one"
    what = f"version {handle.txn_version} of {TRANSACTIONAL_ID} {handle.transactional_id!r}"
    committed = described.joint.committed_version
    if committed != handle.txn_version:
        raise TransactionError(
            f"{what} is not written, because version {committed} is committed: the checkpoint is"
            " older than the written versions (restored, or copied), or another run of it is ahead."
            f" Go on with the newest checkpoint; or start over with another {TRANSACTIONAL_ID}"
        )
    if in_run:
        raise TransactionError(
            f"{what} was written before in this run, and this is not written: each write of one"
            f" foreachBatch needs a {TRANSACTIONAL_ID} of its own"
        )


async def _abort(
    client: SemelClient,
    options: SinkOptions,
    handle: JointHandle,
    receipts: Sequence[JointReceipt],
) -> None:
    joint = client.joint_transaction_of(handle, options.producer)
    try:
        if receipts or await _is_open(client, handle):
            await joint.abort(receipts)
    except SemelError as error:
        # Spark has an error to tell already; the next run, or the coordinator, aborts.
        _log.warning("abort of %s failed: %s", handle, error)
    finally:
        await joint.close()


async def _is_open(client: SemelClient, handle: JointHandle) -> bool:
    """Whether this very write is at work: an abort by one that is not would fence the other."""
    try:
        described = await client.admin().describe_transactions(handle.transactional_id)
    except TransactionalIdNotFoundError:
        return False
    joint = described.joint
    return (
        joint is not None and joint.run == handle.run and joint.open_version == handle.txn_version
    )
