"""What an instance knows of its cluster."""

from collections.abc import Iterable

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from semel_runtime.cluster.metadata_copy import ClusterCopy


def cluster_figures(cluster: ClusterCopy) -> Iterable[Metric]:
    """Look up its copy of the metadata; nothing before the first."""
    if cluster.image is not None:
        yield GaugeMetricFamily(
            "semel_metadata_version",
            "Version of the metadata that this instance knows.",
            value=cluster.image.version,
        )
        yield GaugeMetricFamily(
            "semel_topics", "Topics that this instance knows.", value=len(cluster.image.topics)
        )
