"""The name of a write's transaction: every task finds the same name, in every attempt.

Theory of operation. A transaction is named by id, version, owner and run (see ``JointHandle``).
Spark tells a task of a stream which query, which run of it and which micro-batch it works for; it
tells the driver's part of a sink none of that. So tasks make the name, and the driver learns it
from their receipts. If a write fails before there is one, the driver can but suppose that it was in
no ``foreachBatch``; readers wait for the time-out of others.

A batch write within ``foreachBatch`` gets the same facts, on classic Spark, and has the same names.
The options of any other batch write name it; without any, it is a transaction that no job can
repeat: atomic, but done again it writes again. Its id is used for nothing else, and says so.

Spark Connect tells a write within ``foreachBatch`` nothing. It cannot be told from any other there,
so there all batch writes must say who they are.

A run is known by the job group that Spark sets for a query, and nothing else tells it. A function
of ``foreachBatch`` that sets a group of its own makes all runs look like one: no older run would be
fenced, and a restart's repeats would look written twice. So only the UUID of a run will do. No I/O.
"""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from aiosemel import JointHandle
from pyspark_semel.errors import OptionError, TransactionError
from pyspark_semel.sink.options import TRANSACTIONAL_ID, TXN_VERSION, SinkOptions

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_RUN_ID = "spark.jobGroup.id"
_JOB_TAGS = "spark.job.tags"
_TAG_OF_CONNECT = "SparkConnect_"

LocalProperty = Callable[[str], str | None]
"""``TaskContext.getLocalProperty``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """What Spark tells a task of a stream."""

    query_id: str
    """Made with the checkpoint, and kept over restarts."""
    run_id: str
    """Another one after each restart."""
    batch_id: int


def micro_batch(local_property: LocalProperty) -> MicroBatch | None:
    """Return the micro-batch that a task works for; None: for none, as far as it is told.

    Raises TransactionError if it is not told in which run of the query.
    """
    query_id, batch_id = local_property(_QUERY_ID), local_property(_BATCH_ID)
    if query_id is None or batch_id is None:
        return None
    return MicroBatch(
        query_id=query_id,
        run_id=_run_id(local_property(_RUN_ID)),
        batch_id=int(batch_id),
    )


def _run_id(job_group: str | None) -> str:
    try:
        if job_group is not None and str(UUID(job_group)) == job_group:
            return job_group
    except ValueError:
        pass
    raise TransactionError(
        f"{_RUN_ID} is {job_group!r}, and not the id of this run of the query: setJobGroup within"
        " foreachBatch hides which run it is. Leave it out; addJobTag marks jobs, too"
    )


def of_stream(options: SinkOptions, local_property: LocalProperty) -> JointHandle:
    """Return the transaction of a micro-batch."""
    found = micro_batch(local_property)
    assert found is not None, "Spark names the query and the batch to every task of a stream"
    return JointHandle(
        transactional_id=options.transactional_id or f"spark-{found.query_id}",
        txn_version=found.batch_id,
        owner=found.query_id,
        run=found.run_id,
        transaction_timeout_ms=options.transaction_timeout_ms,
        reset=options.reset,
    )


def of_batch(options: SinkOptions, local_property: LocalProperty, write_id: str) -> JointHandle:
    """Return the transaction of a batch write; ``write_id`` is the same for all of its tasks.

    Raises OptionError where options would have to say more, TransactionError where Spark would.
    """
    found = micro_batch(local_property)
    if found is None and options.txn_version is None:
        _check_nothing_is_missing(options, local_property)
    return _of_batch(options, found, write_id)


def of_lone_batch(options: SinkOptions, write_id: str) -> JointHandle | None:
    """Return the transaction of a batch write if it is in no ``foreachBatch``, without a task.

    None: it is in one for sure, because its options leave the version to that.
    """
    if options.transactional_id is not None and options.txn_version is None:
        return None
    return _of_batch(options, None, write_id)


def _of_batch(options: SinkOptions, found: MicroBatch | None, write_id: str) -> JointHandle:
    version = options.txn_version
    if version is None:
        version = 0 if found is None else found.batch_id
    transactional_id = options.transactional_id or _default_id(options, found, write_id)
    return JointHandle(
        transactional_id=transactional_id,
        txn_version=version,
        owner=transactional_id if found is None else found.query_id,
        run=write_id if found is None else found.run_id,
        transaction_timeout_ms=options.transaction_timeout_ms,
        reset=options.reset,
        one_shot=found is None and options.transactional_id is None,
    )


def _default_id(options: SinkOptions, found: MicroBatch | None, write_id: str) -> str:
    """Return an id; that of a micro-batch has the topic in it, if all rows go to one.

    So one ``foreachBatch`` may write to two topics, one after the other.
    """
    if found is None:
        return f"spark-{write_id}"
    return f"spark-{found.query_id}" + (f"-{options.topic}" if options.topic else "")


def _check_nothing_is_missing(options: SinkOptions, local_property: LocalProperty) -> None:
    if options.transactional_id is not None:
        raise OptionError(
            f"{TRANSACTIONAL_ID} is {options.transactional_id!r}, and {TXN_VERSION} is missing: a"
            " number that rises from one write to the next, in foreachBatch the batch id"
        )
    if _TAG_OF_CONNECT in (local_property(_JOB_TAGS) or ""):
        raise OptionError(
            f"{TRANSACTIONAL_ID} and {TXN_VERSION} are missing: with Spark Connect a batch write"
            " must say both, because a repeated one cannot be told from a new one. In"
            " foreachBatch give a name of the query and the batch id; else any new id, and 0"
        )
