"""OpenTelemetry's SDK with its exporter over gRPC, as all our processes use it.

Imported where spans are exported, and nowhere else: it needs the extra ``otlp``.
"""

from collections.abc import Mapping

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from semel_common.wire.channel_options import DIRECT


class ProcessResource(Resource):
    """What a process is called. It never changes, so it is hashed once.

    The exporter groups spans by their resource, and a resource's hash is that of its JSON, made
    each time: a third of the cost of exporting a span.
    """

    def __init__(self, resource: Resource) -> None:
        """Be the same as another."""
        super().__init__(resource.attributes, resource.schema_url)
        self._hash = super().__hash__()

    def __hash__(self) -> int:
        """Return the hash of the resource that this is the same as."""
        return self._hash

    def __eq__(self, other: object) -> bool:
        """Compare attributes."""
        return self is other or super().__eq__(other)


def exporting_provider(attributes: Mapping[str, str], *, direct: bool) -> TracerProvider:
    """Return what records spans, and exports them as the environment says, until it is shut down.

    ``attributes`` name the process where the environment does not. ``direct``: a proxy that the
    environment names has no part in it.
    """
    resource = ProcessResource(Resource.create(dict(attributes)))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    options = (DIRECT,) if direct else None
    exporter = OTLPSpanExporter(channel_options=options)  # type: ignore[arg-type]  # gRPC ignores a text, which the exporter's annotation asks for
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
