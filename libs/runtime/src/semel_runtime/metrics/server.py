"""Connections and streams of a server."""

from collections.abc import Iterable

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from semel_runtime.server.grpc_server import GrpcServer


def stream_figures(server: GrpcServer) -> Iterable[Metric]:
    """Look up the frame streams."""
    yield GaugeMetricFamily(
        "semel_frame_streams", "Frame streams that are open.", value=server.stream_count
    )
    yield GaugeMetricFamily(
        "semel_requests_in_flight",
        "Requests that are not answered yet, of frame streams and unary.",
        value=server.requests_in_flight,
    )
    yield GaugeMetricFamily(
        "semel_bytes_in_flight",
        "Bytes that frame streams hold: of requests, answers and messages that are arriving.",
        value=server.bytes_in_flight,
    )
