"""The RPCs of the broker, each with the object that answers it."""

from dataclasses import dataclass

from semel_broker.rpc.copy_log import LogCopier
from semel_broker.rpc.count_records import RecordCounter
from semel_broker.rpc.delete_records import RecordDeleter
from semel_broker.rpc.describe_producers import ProducerDescriber
from semel_broker.rpc.describe_writes import WriteDescriber
from semel_broker.rpc.fetch import Fetcher
from semel_broker.rpc.hand_over_log import LogGiver
from semel_broker.rpc.list_offsets import OffsetLister
from semel_broker.rpc.produce import BatchAppender
from semel_broker.rpc.write_txn_markers import MarkerWriter
from semel_common.wire import methods
from semel_runtime.server.calls import Handlers

AUDITED = {each.path: each.name for each in (methods.DELETE_RECORDS, methods.FETCH)}
"""The names of the audited RPCs, by path."""
AUDITED_OF_PEOPLE = frozenset({methods.FETCH.path})
"""The paths of RPCs that programs call as well: the audit has the requests of operators only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerService:
    """Everything that answers calls of a broker."""

    appender: BatchAppender
    fetcher: Fetcher
    lister: OffsetLister
    counter: RecordCounter
    deleter: RecordDeleter
    describer: ProducerDescriber
    write_describer: WriteDescriber
    copier: LogCopier
    giver: LogGiver
    marker_writer: MarkerWriter

    def register(self, handlers: Handlers) -> None:
        """Add the handlers."""
        handlers.add(methods.PRODUCE, self.appender.produce)
        handlers.add(methods.FETCH, self.fetcher.fetch)
        handlers.add(methods.LIST_OFFSETS, self.lister.list_offsets)
        handlers.add(methods.COUNT_RECORDS, self.counter.count_records)
        handlers.add(methods.DELETE_RECORDS, self.deleter.delete_records)
        handlers.add(methods.DESCRIBE_PRODUCERS, self.describer.describe_producers)
        handlers.add(methods.DESCRIBE_WRITES, self.write_describer.describe_writes)
        handlers.add(methods.COPY_LOG, self.copier.copy_log)
        handlers.add(methods.HAND_OVER_LOG, self.giver.hand_over_log)
        handlers.add(methods.BROKER_WRITE_TXN_MARKERS, self.marker_writer.write_txn_markers)
