"""The span of a database's commit: in the trace of the transaction that it decides.

It lies between the requests that prepare the transaction and that complete it. The completion runs
in the background, after the caller's spans have ended, so it takes its place in the trace along.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    StatusCode,
    Tracer,
    get_current_span,
)

from aiosemel.database.contract import Dialect
from aiosemel.types.prepared_transaction import PreparedTransactionId
from semel_common.telemetry import trace_context

_SYSTEMS: Mapping[Dialect, str] = {
    Dialect.SQLITE: "sqlite",
    Dialect.POSTGRESQL: "postgresql",
    Dialect.MYSQL: "mysql",
}
"""Names of OpenTelemetry's conventions."""
_NOTHING = nullcontext()


def committing(
    tracer: Tracer | None,
    dialect: Dialect,
    prepared: PreparedTransactionId,
    parent: SpanContext | None,
) -> AbstractContextManager[object]:
    """Make a block the span of a commit: below ``parent``, else below the span of now."""
    return _NOTHING if tracer is None else _committing(tracer, dialect, prepared, parent)


@contextmanager
def _committing(
    tracer: Tracer, dialect: Dialect, prepared: PreparedTransactionId, parent: SpanContext | None
) -> Iterator[None]:
    with tracer.start_as_current_span(
        "commit database",
        context=None if parent is None else trace_context.below(parent),
        kind=SpanKind.CLIENT,
        attributes={
            "db.system.name": _SYSTEMS[dialect],
            "db.operation.name": "COMMIT",
            "semel.transactional_id": prepared.transactional_id,
        },
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except Exception as error:
            span.set_status(StatusCode.ERROR, str(error))
            raise


def place_in_trace() -> AbstractContextManager[object]:
    """Return a block that is below the span of now, whenever it runs."""
    context = get_current_span().get_span_context()
    if not context.is_valid:
        return _NOTHING
    return trace_context.within((NonRecordingSpan(context),))
