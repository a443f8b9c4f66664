"""The coordinator's records as bytes, ``semel/coordinator/journal/v1/journal.proto``."""

from semel.coordinator.journal.v1.journal_pb2 import JournalRecord
from semel_coordinator.controller.serde import controller_from_journal, controller_to_journal
from semel_coordinator.machine import CoordinatorRecord
from semel_runtime.cluster.image import ClusterImage
from semel_runtime.cluster.serde import image_from_journal, image_to_journal


class CoordinatorSerde:
    """Maps records to bytes and back. Implements ``Serde``."""

    def encode(self, record: CoordinatorRecord) -> bytes:
        """Serialize one record."""
        if isinstance(record, ClusterImage):
            return JournalRecord(cluster_image=image_to_journal(record)).SerializeToString()
        return controller_to_journal(record).SerializeToString()

    def decode(self, data: bytes) -> CoordinatorRecord:
        """Read one record."""
        record = JournalRecord.FromString(data)
        if record.HasField("cluster_image"):
            return image_from_journal(record.cluster_image)
        controllers = controller_from_journal(record)
        assert controllers is not None, f"a record of an unknown kind: {record}"
        return controllers
