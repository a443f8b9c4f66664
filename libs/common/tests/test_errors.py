"""Errors: one class for each code, and one mapping to statuses and values and back."""

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from semel.common.v1 import errors_pb2
from semel_common import errors
from semel_common.error_codes import ErrorClass, ErrorCode
from semel_common.errors import SemelError
from semel_common.wire import status
from semel_common.wire.status import error_for

PREFIX = "ERROR_CODE_"
EVERY_CODE = pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)


def test_the_codes_are_those_of_the_contract() -> None:
    declared = {
        name.removeprefix(PREFIX): number for name, number in errors_pb2.ErrorCode.items() if number
    }
    assert declared == {code.name: code.value for code in ErrorCode}


@EVERY_CODE
def test_every_code_has_a_class_of_its_own(code: ErrorCode) -> None:
    error = error_for(code, "told", {"offset": "7"})
    assert error.code is code
    assert type(error) is not SemelError
    assert (error.message, error.details) == ("told", {"offset": "7"})


@EVERY_CODE
def test_every_error_survives_the_way_as_a_value(code: ErrorCode) -> None:
    error = error_for(code, "told", {"offset": "7"})
    again = status.from_value(status.to_value(error))
    assert type(again) is type(error)
    assert (again.message, again.details) == (error.message, error.details)


def of_call(sent: status_pb2.Status) -> SemelError:
    """Return what a client makes of the status of a call."""
    details = grpc.aio.Metadata(("grpc-status-details-bin", sent.SerializeToString()))
    code = grpc.StatusCode.UNKNOWN
    failed = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), details, "why")
    return status.from_rpc_error(failed, "127.0.0.1:1")


def with_info(**info: str) -> status_pb2.Status:
    """Return a status with the ``ErrorInfo`` of a reason and its metadata."""
    packed = any_pb2.Any()
    reason = info.pop("reason")
    packed.Pack(error_details_pb2.ErrorInfo(reason=reason, domain=status.DOMAIN, metadata=info))
    return status_pb2.Status(message="told", details=[packed])


@EVERY_CODE
def test_every_error_survives_the_way_as_a_status(code: ErrorCode) -> None:
    error = error_for(code, "told", {"offset": "7"})
    again = of_call(status.to_status(error))
    assert type(again) is type(error)
    assert (again.message, again.details) == (error.message, error.details)


def test_the_classes_are_those_of_the_contract() -> None:
    declared = {
        name.removeprefix("ERROR_CLASS_"): number
        for name, number in errors_pb2.ErrorClass.items()
        if number
    }
    assert declared == {each.name: each.value for each in ErrorClass}


@EVERY_CODE
def test_the_class_of_every_error_is_on_the_wire(code: ErrorCode) -> None:
    error = error_for(code, "told", {})
    info = error_details_pb2.ErrorInfo()
    assert status.to_status(error).details[0].Unpack(info)
    number = int(status.to_value(error).error_class)
    assert number == ErrorClass[info.metadata["error_class"]].value
    name = errors_pb2.ErrorClass.Name(status.to_value(error).error_class)
    assert name == f"ERROR_CLASS_{error.error_class.name}"


@EVERY_CODE
def test_the_message_of_a_status_begins_with_reason_and_class(code: ErrorCode) -> None:
    error = error_for(code, "told", {})
    message = status.to_status(error).message
    assert message == f"{code.name} ({error.error_class.name}): told"


@pytest.mark.parametrize("error_class", ErrorClass, ids=lambda each: each.name)
def test_a_code_of_a_newer_release_is_an_error_of_its_class_that_names_it(
    error_class: ErrorClass,
) -> None:
    value = errors_pb2.Error(code=4711, message="told", error_class=error_class.value)  # type: ignore[arg-type]  # newer
    error = status.from_value(value)
    assert error.error_class is error_class
    assert error.message == "told (error code 4711)"
    error = of_call(with_info(reason="NEWER", error_class=error_class.name))
    assert error.error_class is error_class
    assert error.message == "told (error code NEWER)"


def test_a_code_without_a_class_that_is_known_is_an_unknown_server_error() -> None:
    assert type(error_for(4711, "told", {})) is errors.UnknownServerError
    assert type(error_for(4711, "told", {}, 4711)) is errors.UnknownServerError
    assert (
        type(of_call(with_info(reason="NEWER", error_class="NEWER"))) is errors.UnknownServerError
    )


def test_an_error_of_an_older_server_has_no_class_on_the_wire_and_is_known_by_its_code() -> None:
    value = errors_pb2.Error(code=errors_pb2.ERROR_CODE_PRODUCER_FENCED, message="told")
    assert type(status.from_value(value)) is errors.ProducerFencedError
    error = of_call(with_info(reason="NOT_COORDINATOR", key="billing"))
    assert type(error) is errors.NotCoordinatorError
    assert error.details == {"key": "billing"}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.ConcurrentTransactionsError("x"), grpc.StatusCode.ABORTED),
        (errors.NotCoordinatorError("x"), grpc.StatusCode.UNAVAILABLE),
        (errors.UnknownTopicOrPartitionError("x"), grpc.StatusCode.NOT_FOUND),
        (errors.ProducerFencedError("x"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.InvalidTxnStateError("x"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.InvalidRecordError("x"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.TopicAuthorizationFailedError("x"), grpc.StatusCode.PERMISSION_DENIED),
        (errors.InvalidProducerTokenError("x"), grpc.StatusCode.PERMISSION_DENIED),
        (errors.ThrottlingQuotaExceededError("x"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.UnknownServerError("x"), grpc.StatusCode.INTERNAL),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, SemelError) else None,
)
def test_the_class_of_an_error_decides_its_grpc_status(
    error: SemelError, expected: grpc.StatusCode
) -> None:
    assert status.status_code_of(error) is expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (grpc.StatusCode.DEADLINE_EXCEEDED, errors.RequestTimedOutError),
        (grpc.StatusCode.UNAVAILABLE, errors.NetworkExceptionError),
        (grpc.StatusCode.CANCELLED, errors.NetworkExceptionError),
        (grpc.StatusCode.INTERNAL, errors.NetworkExceptionError),
        (grpc.StatusCode.UNKNOWN, errors.NetworkExceptionError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, errors.ThrottlingQuotaExceededError),
        (grpc.StatusCode.UNIMPLEMENTED, errors.NetworkExceptionError),
        (grpc.StatusCode.DATA_LOSS, errors.UnknownServerError),
    ],
)
def test_a_failure_of_grpc_itself_has_a_class_too(
    code: grpc.StatusCode, expected: type[SemelError]
) -> None:
    failed = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "why")
    error = status.from_rpc_error(failed, "127.0.0.1:1")
    assert type(error) is expected
    assert "127.0.0.1:1" in error.message


def test_a_timeout_is_never_reported_as_fenced() -> None:
    assert not issubclass(errors.RequestTimedOutError, errors.ApplicationRecoverableError)
    assert issubclass(errors.RequestTimedOutError, errors.RetriableError)
