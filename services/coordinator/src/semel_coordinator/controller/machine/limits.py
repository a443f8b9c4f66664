"""Limits of the cluster's metadata."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerLimits:
    """The limits of a cluster, and a topic's defaults."""

    num_partitions: int = 1
    """Partitions of a topic whose creator named no number."""
    topic_partitions_max: int = 10_000
    """Partitions of one topic, at most."""
    partitions_max: int = 100_000
    """Partitions of all topics together, at most."""
    topics_max: int = 10_000
    """Topics, at most."""
    acls_max: int = 10_000
    """Access rules, at most: every instance keeps all of them, and gets all with every change."""
    client_quotas_max: int = 10_000
    """Users with limits of their own, at most."""
