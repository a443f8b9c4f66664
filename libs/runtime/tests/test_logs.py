"""What stands on every line of a service's log."""

import logging

import structlog
from opentelemetry.trace import NonRecordingSpan

from semel_common.telemetry import trace_context
from semel_runtime.logs.log_setup import _add_trace_ids, _SeldomToStructlog, _ToStructlog

CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_line_names_the_trace_of_its_request() -> None:
    context = trace_context.read(CONTEXT)
    assert context is not None
    with trace_context.within((NonRecordingSpan(context),)):
        line = _add_trace_ids(None, "info", {"event": "request refused"})
    assert line == {
        "event": "request refused",
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": "b7ad6b7169203331",
    }
    assert _add_trace_ids(None, "info", {"event": "service ready"}) == {"event": "service ready"}


def test_an_exporter_that_fails_again_and_again_is_told_of_once() -> None:
    seen: list[str] = []

    class Told(_SeldomToStructlog):
        def tell(self, reason: str) -> None:
            seen.append(reason)

    handler = Told()
    for _ in range(3):
        handler.emit(logging.LogRecord("opentelemetry", logging.WARNING, "", 0, "away", (), None))
    assert seen == ["away"]


def test_an_answer_that_its_client_does_not_wait_for_is_no_error() -> None:
    class ExecuteBatchError(Exception):
        """Named as the class of gRPC, which exports none."""

    error = ExecuteBatchError()
    seen = (type(error), error, None)
    for name, events in (("grpc._cython.cygrpc", ["debug"]), ("other", ["error"])):
        with structlog.testing.capture_logs() as logs:
            record = logging.LogRecord(name, logging.ERROR, "", 0, "raised", (), seen)
            _ToStructlog().emit(record)
        assert [entry["log_level"] for entry in logs] == events
