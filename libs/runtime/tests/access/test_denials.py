"""A refused call costs one look at its counts, and one line of the log."""

import pytest
from structlog.testing import capture_logs

from semel.coordinator.v1.cluster_pb2 import DeleteTopicsRequest, DeleteTopicsResponse
from semel_common.errors import InvalidRequestError, SemelError, TopicAuthorizationFailedError
from semel_common.wire.methods import DELETE_TOPICS
from semel_runtime.access.denial_log import Denials, Denied
from semel_runtime.access.item_refusals import split
from semel_runtime.access.resource_names import Ref
from semel_runtime.access.rpc_permissions import NEEDS, Each


def clauses() -> list[Each]:
    return [clause for clause in NEEDS[DELETE_TOPICS.path].clauses if isinstance(clause, Each)]


def test_entries_are_counted_before_any_is_looked_at() -> None:
    asked: list[Ref] = []

    def refuse(_: Each, ref: Ref) -> SemelError | None:
        asked.append(ref)
        return None

    request = DeleteTopicsRequest(topics=[""] * 1_001)
    with pytest.raises(InvalidRequestError, match="topics has 1001 entries"):
        split(clauses(), request, refuse)
    assert asked == []


def test_refused_entries_are_answered_each_in_its_place() -> None:
    error = TopicAuthorizationFailedError("not you")

    def refuse(_: Each, ref: Ref) -> SemelError | None:
        return error if ref.name == "mine" else None

    refusals = split(clauses(), DeleteTopicsRequest(topics=["mine", "yours", "mine"]), refuse)
    assert refusals is not None
    response = DeleteTopicsResponse()
    response.topics.add(name="yours")
    refusals.answer(response)
    assert [(topic.name, topic.error.message) for topic in response.topics] == [
        ("mine", "not you"),
        ("yours", ""),
        ("mine", "not you"),
    ]


def test_a_call_is_one_line_however_many_entries_are_refused() -> None:
    denied = Denied()
    for number in range(1_000):
        denied.add(TopicAuthorizationFailedError(f"no permission on topic {number % 7}"))
    with capture_logs() as lines:
        Denials().log("User:app", "DeleteTopics", denied)
    (line,) = lines
    assert (line["items"], line["principal"], line["method"]) == (1_000, "User:app", "DeleteTopics")
    assert line["reasons"] == [f"no permission on topic {number}" for number in range(3)]


def test_calls_of_one_principal_hide_no_other_one() -> None:
    denials = Denials()
    with capture_logs() as lines:
        for principal in ["User:a"] * 1_000 + ["User:b"]:
            denied = Denied()
            denied.add(TopicAuthorizationFailedError("no permission"))
            denials.log(principal, "DeleteTopics", denied)
    principals = [line["principal"] for line in lines]
    assert principals.count("User:b") == 1
    assert principals.count("User:a") < 10


def test_a_call_that_is_allowed_is_no_line() -> None:
    with capture_logs() as lines:
        Denials().log("User:app", "DeleteTopics", Denied())
    assert lines == []
