"""Which cluster a client belongs to: the cluster that answered first, for the client's whole life.

A service that refuses a call for another cluster does not end the client yet: the client may know
the address from older metadata, and the address may belong to an instance of another cluster by
now. So the client asks for metadata, and repeats the call. The client ends when a coordinator
belongs to another cluster, and no coordinator that answers belongs to the client's own.
"""

from aiosemel.errors import BrokerNotAvailableError, InconsistentClusterIdError


class ClusterIdentity:
    """The cluster of one client."""

    def __init__(self, expected: str | None) -> None:
        """Belong to the expected cluster; None: to the one that answers first."""
        self.cluster_id = expected or ""
        """Empty before the first answer."""
        self._error: InconsistentClusterIdError | None = None

    @property
    def end(self) -> InconsistentClusterIdError | None:
        """The error of every call once the client has ended; None before."""
        if self._error is None:
            return None
        return InconsistentClusterIdError(self._error.message, **self._error.details)

    def check(self) -> None:
        """Raise InconsistentClusterIdError once the client has ended."""
        if (error := self.end) is not None:
            raise error

    def end_with(self, error: InconsistentClusterIdError) -> None:
        """End the client: every call from now on raises this error."""
        self._error = error.as_value()

    def learn(self, cluster_id: str, address: str) -> None:
        """Take the cluster id of an answer; raises InconsistentClusterIdError for another one."""
        self.cluster_id = self.cluster_id or cluster_id
        if cluster_id != self.cluster_id:
            raise self._another(cluster_id, address)

    def check_belongs(self, cluster_id: str, what: str) -> None:
        """Raise InconsistentClusterIdError for a thing of another cluster; empty: of any."""
        if cluster_id and self.cluster_id not in ("", cluster_id):
            raise InconsistentClusterIdError(
                f"{what} is in cluster {cluster_id}, and this client belongs to cluster"
                f" {self.cluster_id}: use a client of cluster {cluster_id}",
                cluster_id=cluster_id,
                client_cluster_id=self.cluster_id,
            )

    def refused(
        self, error: InconsistentClusterIdError, address: str
    ) -> InconsistentClusterIdError:
        """Return what a refusal by the service at an address says to the user of this client."""
        return self._another(error.details.get("cluster_id", "another one"), address)

    def misled(self, error: InconsistentClusterIdError, address: str) -> BrokerNotAvailableError:
        """Return the same refusal as a reason to ask for metadata, and to repeat the call."""
        return BrokerNotAvailableError(self.refused(error, address).message)

    def _another(self, cluster_id: str, address: str) -> InconsistentClusterIdError:
        return InconsistentClusterIdError(
            f"this client belongs to cluster {self.cluster_id}, but {address} belongs to cluster"
            f" {cluster_id}; make a new client",
            cluster_id=cluster_id,
            client_cluster_id=self.cluster_id,
            address=address,
        )
