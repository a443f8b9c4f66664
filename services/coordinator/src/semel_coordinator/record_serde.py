"""The coordinator's records as bytes, ``semel/coordinator/journal/v1/journal.proto``."""

from semel.coordinator.journal.v1.journal_pb2 import JournalRecord
from semel_coordinator.controller.journal.controller_serde import (
    controller_from_journal,
    controller_to_journal,
)
from semel_coordinator.controller.machine.records import CONTROLLER_RECORDS
from semel_coordinator.coordinator_machine import CoordinatorRecord
from semel_coordinator.transactions.journal import transaction_serde as transactions
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.cluster.metadata_serde import ImageReader, image_to_journal


class CoordinatorSerde:
    """Maps records to bytes and back. Implements ``Serde``."""

    def __init__(self) -> None:
        """Know no topic yet."""
        self._images = ImageReader()

    def encode(self, record: CoordinatorRecord) -> bytes:
        """Serialize one record."""
        if isinstance(record, CONTROLLER_RECORDS):
            return controller_to_journal(record).SerializeToString()
        message = JournalRecord()
        if isinstance(record, ClusterImage):
            message.cluster_image.CopyFrom(image_to_journal(record))
        else:
            transactions.write(record, message.transactions)
        return message.SerializeToString()

    def decode(self, data: bytes) -> CoordinatorRecord:
        """Read one record."""
        message = JournalRecord.FromString(data)
        match message.WhichOneof("record"):
            case "transactions":
                return transactions.read(message.transactions)
            case "cluster_image":
                return self._images.from_journal(message.cluster_image)
            case _:
                return controller_from_journal(message)
