"""A collector of spans on loopback: the real service of OTLP, which keeps what it is sent.

As a program, it writes its address to standard output, and drops what it is sent until its input
ends.
"""

import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


class Collector:
    """What was received so far, and where."""

    def __init__(self, endpoint: str) -> None:
        """Have received nothing yet."""
        self.endpoint = endpoint
        self.requests: deque[ExportTraceServiceRequest] = deque()

    def export(
        self, request: ExportTraceServiceRequest, _context: grpc.ServicerContext
    ) -> ExportTraceServiceResponse:
        """Keep it."""
        self.requests.append(request)
        return ExportTraceServiceResponse()

    def services(self) -> set[str]:
        """Return the services that have sent spans."""
        return {
            attribute.value.string_value
            for request in self.requests
            for spans in request.resource_spans
            for attribute in spans.resource.attributes
            if attribute.key == "service.name"
        }


@contextmanager
def collecting() -> Iterator[Collector]:
    """Receive spans within a block."""
    server = grpc.server(ThreadPoolExecutor(4))
    port = server.add_insecure_port("127.0.0.1:0")
    collector = Collector(f"http://127.0.0.1:{port}")
    handler = grpc.unary_unary_rpc_method_handler(
        collector.export,
        request_deserializer=ExportTraceServiceRequest.FromString,
        response_serializer=ExportTraceServiceResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {"Export": handler}),)
    )
    server.start()
    try:
        yield collector
    finally:
        server.stop(None).wait()


def _drop() -> None:
    with collecting() as collector:
        collector.requests = deque(maxlen=0)
        sys.stdout.write(f"{collector.endpoint}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    _drop()
