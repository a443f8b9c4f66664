"""Which RPC of the broker is answered by whom."""

from semel_broker.rpc.count_records import RecordCounter
from semel_broker.rpc.delete_records import RecordDeleter
from semel_broker.rpc.describe_producers import ProducerDescriber
from semel_broker.rpc.fetch import Fetcher
from semel_broker.rpc.hand_over_log import LogGiver
from semel_broker.rpc.list_offsets import OffsetLister
from semel_broker.rpc.produce import BrokerWriter
from semel_common.wire.methods import (
    BROKER_WRITE_TXN_MARKERS,
    COPY_LOG,
    COUNT_RECORDS,
    DELETE_RECORDS,
    DESCRIBE_PRODUCERS,
    FETCH,
    HAND_OVER_LOG,
    LIST_OFFSETS,
    PRODUCE,
)
from semel_runtime.server.calls import Handlers


def bind(
    handlers: Handlers,
    *,
    writer: BrokerWriter,
    fetcher: Fetcher,
    lister: OffsetLister,
    deleter: RecordDeleter,
    counter: RecordCounter,
    giver: LogGiver,
    describer: ProducerDescriber,
) -> None:
    """Register the handlers of a broker."""
    handlers.add(PRODUCE, writer.produce)
    handlers.add(FETCH, fetcher.fetch)
    handlers.add(LIST_OFFSETS, lister.list_offsets)
    handlers.add(COUNT_RECORDS, counter.count_records)
    handlers.add(DELETE_RECORDS, deleter.delete_records)
    handlers.add(DESCRIBE_PRODUCERS, describer.describe_producers)
    handlers.add(COPY_LOG, giver.copy_log)
    handlers.add(HAND_OVER_LOG, giver.hand_over_log)
    handlers.add(BROKER_WRITE_TXN_MARKERS, writer.write_txn_markers)
