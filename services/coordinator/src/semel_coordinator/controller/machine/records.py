"""What the controller writes: each record is the whole new state of one thing.

``version`` is the metadata's from this record on. It rises with every record but one: an instance
at the place where it was known, under a new claim or with a longer journal, changes nothing that
others see.
"""

from msgspec import Struct

from semel_runtime.access.acls import Acl
from semel_runtime.access.client_quotas import ClientQuota
from semel_runtime.claims import JournalMark
from semel_runtime.cluster.metadata_image import Instance, InternalPartition, Layout, Topic


class ClusterRecord(Struct, frozen=True, kw_only=True):
    """The cluster itself; a snapshot ends with it, so that no version is given twice."""

    version: int
    cluster_id: str
    layout: Layout


class InstanceRecord(Struct, frozen=True, kw_only=True):
    """An instance as it registered."""

    version: int
    instance: Instance
    claim_epoch: int
    """Of its journal."""
    claim_token: str
    """Random, of its process; empty: not known."""
    journal_end_offset: int = 0
    """How far that journal went, durably, at the last registration."""

    @property
    def mark(self) -> JournalMark:
        """How far its journal went."""
        return JournalMark(
            claim_epoch=self.claim_epoch,
            claim_token=self.claim_token,
            end_offset=self.journal_end_offset,
        )


class TopicRecord(Struct, frozen=True, kw_only=True):
    """A topic with the leaders of its partitions."""

    version: int
    topic: Topic


class TopicDeletedRecord(Struct, frozen=True, kw_only=True):
    """A topic is gone."""

    version: int
    topic_id: str


class AclRecord(Struct, frozen=True, kw_only=True):
    """A rule that holds."""

    version: int
    acl: Acl


class AclDeletedRecord(Struct, frozen=True, kw_only=True):
    """A rule is gone."""

    version: int
    acl: Acl


class ClientQuotaRecord(Struct, frozen=True, kw_only=True):
    """What one user may use; without limits, nothing is said of the user."""

    version: int
    client_quota: ClientQuota


class InternalPartitionRecord(Struct, frozen=True, kw_only=True):
    """A partition of groups or of the transaction log that was moved, or moves."""

    version: int
    internal: InternalPartition


ControllerRecord = (
    ClusterRecord
    | InstanceRecord
    | TopicRecord
    | TopicDeletedRecord
    | AclRecord
    | AclDeletedRecord
    | ClientQuotaRecord
    | InternalPartitionRecord
)
CONTROLLER_RECORDS = (
    ClusterRecord,
    InstanceRecord,
    TopicRecord,
    TopicDeletedRecord,
    AclRecord,
    AclDeletedRecord,
    ClientQuotaRecord,
    InternalPartitionRecord,
)
"""The same, as a type for functions that sort records."""
