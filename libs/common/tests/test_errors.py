"""Errors: one class for each code, and one mapping to statuses and values and back."""

import grpc
import pytest

from semel.common.v1 import errors_pb2
from semel_common import errors
from semel_common.error_codes import ErrorCode
from semel_common.errors import SemelError, error_for
from semel_common.wire import status

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


def test_a_code_of_a_newer_release_is_an_unknown_server_error_that_names_it() -> None:
    error = error_for(4711, "told", {})
    assert isinstance(error, errors.UnknownServerError)
    assert error.message == "told (error code 4711)"


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
