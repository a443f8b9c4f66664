"""The admin client: creates, deletes, lists and describes.

Every call ends within ``default_api_timeout_ms``, at the latest by RequestTimedOutError. What it
asks for may have happened then, and when it was cancelled.
"""

from aiosemel._admin.access_admin import AccessAdmin
from aiosemel._admin.group_admin import GroupAdmin
from aiosemel._admin.group_queries import GroupQueries
from aiosemel._admin.move_admin import MoveAdmin
from aiosemel._admin.operator_admin import Operators
from aiosemel._admin.record_admin import RecordAdmin
from aiosemel._admin.topic_admin import TopicAdmin
from aiosemel._admin.transaction_admin import TransactionAdmin
from aiosemel._cluster.description import describe_cluster
from aiosemel.types.descriptions import ClusterDescription


class Admin(TopicAdmin, RecordAdmin, GroupQueries, TransactionAdmin):
    """Looks after a cluster. Made by ``SemelClient.admin``; needs no closing."""

    async def describe_cluster(self) -> ClusterDescription:
        """Return the cluster with all its instances.

        The controller, coordinator 0, knows most of them. If it does not answer, another
        coordinator does.
        """
        return await describe_cluster(self._cluster, self._deadline())

    @property
    def operators(self) -> Operators:
        """The calls of operators: open transactions, aborts, fences, producers."""
        return Operators(self._cluster)

    @property
    def access(self) -> AccessAdmin:
        """Permissions and limits: access rules, and quotas."""
        return AccessAdmin(self._cluster)

    @property
    def moves(self) -> MoveAdmin:
        """Which broker leads which partition: moves, rebalancing, and brokers to be emptied."""
        return MoveAdmin(self._cluster)

    @property
    def groups(self) -> GroupAdmin:
        """The changes of groups: offsets altered, reset and deleted, and whole groups deleted."""
        return GroupAdmin(self._cluster)
