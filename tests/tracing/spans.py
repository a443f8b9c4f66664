"""Spans as their receiver returns them, in one form for OTLP and for Jaeger."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

Value = str | int | float | bool


class Place(NamedTuple):
    """A span's context, in hexadecimal."""

    trace_id: str
    span_id: str


class Seen(NamedTuple):
    """One span."""

    place: Place
    parent_id: str
    name: str
    service: str
    attributes: Mapping[str, Value]
    links: tuple[Place, ...]
    began_us: int
    """In microseconds since 1970."""

    @property
    def short_name(self) -> str:
        """The name without the package and service of an RPC."""
        return self.name.rpartition("/")[2]


def from_otlp(requests: Iterable[ExportTraceServiceRequest]) -> Iterator[Seen]:
    """Read the spans that an exporter has sent."""
    for request in requests:
        for group in request.resource_spans:
            service = str(_values(group.resource.attributes)["service.name"])
            for scope in group.scope_spans:
                for span in scope.spans:
                    yield Seen(
                        place=Place(span.trace_id.hex(), span.span_id.hex()),
                        parent_id=span.parent_span_id.hex(),
                        name=span.name,
                        service=service,
                        attributes=_values(span.attributes),
                        links=tuple(
                            Place(link.trace_id.hex(), link.span_id.hex()) for link in span.links
                        ),
                        began_us=span.start_time_unix_nano // 1000,
                    )


def _values(attributes: Iterable[KeyValue]) -> Mapping[str, Value]:
    return {attribute.key: _value(attribute.value) for attribute in attributes}


def _value(value: AnyValue) -> Value:
    kind = value.WhichOneof("value")
    assert kind is not None, "an attribute has a value"
    found = getattr(value, kind)
    assert isinstance(found, Value), f"an attribute is {kind}"
    return found


class Trace:
    """The spans of one trace."""

    def __init__(self, trace_id: str, seen: Iterable[Seen]) -> None:
        """Take those of the trace, each once, in the order in which they came."""
        self.spans = {each.place: each for each in seen if each.place.trace_id == trace_id}

    def named(self, short_name: str, service: str = "") -> list[Seen]:
        """Return the spans of a name, of one service or of all."""
        return [
            span
            for span in self.spans.values()
            if span.short_name == short_name and service in ("", span.service)
        ]

    def below(self, parent: Seen) -> list[Seen]:
        """Return the children of a span, in the order in which they began."""
        children = [span for span in self.spans.values() if span.parent_id == parent.place.span_id]
        return sorted(children, key=lambda child: child.began_us)

    def lines(self) -> Sequence[str]:
        """Return the tree as text, for people."""
        known = {place.span_id for place in self.spans}
        roots = [span for span in self.spans.values() if span.parent_id not in known]
        return [line for root in roots for line in self._lines(root, "")]

    def _lines(self, span: Seen, indent: str) -> Iterator[str]:
        facts = (str(span.attributes.get(name, "")) for name in _TOLD)
        yield f"{indent}{span.service}: {span.short_name} {' '.join(filter(None, facts))}".rstrip()
        for child in self.below(span):
            yield from self._lines(child, indent + "    ")


_TOLD = ("semel.instance", "messaging.destination.partition.id", "semel.outcome")
