"""The form of every request of ClusterService: which field is at fault."""

import pytest
from coordinator_harness import registration

from semel.coordinator.v1 import cluster_pb2 as wire
from semel_common.errors import InvalidRequestError
from semel_coordinator.controller.rpc.find_coordinator import check_find_coordinator
from semel_coordinator.controller.rpc.instances.registration_requests import read_registration
from semel_coordinator.controller.rpc.metadata import check_metadata
from semel_coordinator.controller.rpc.topics.create_topics import check_create_topics
from semel_coordinator.controller.rpc.topics.delete_topics import check_delete_topics
from semel_runtime.cluster.metadata_image import Listener, ServiceRole

LONG = "x" * 65
MANY = ["x"] * 1_001
GROUP = wire.COORDINATOR_TYPE_GROUP

METADATA = {
    "too many names": (wire.MetadataRequest(topics=MANY), "topics"),
    "too many ids": (wire.MetadataRequest(topic_ids=MANY), "topic_ids"),
    "an empty id": (wire.MetadataRequest(topic_ids=[""]), "topic_ids"),
    "a long id": (wire.MetadataRequest(topic_ids=[LONG]), "topic_ids"),
    "a version below 0": (wire.MetadataRequest(known_version=-1), "known_version"),
    "a wait below 0": (wire.MetadataRequest(max_wait_ms=-1), "max_wait_ms"),
    "a wait of minutes": (wire.MetadataRequest(max_wait_ms=300_001), "max_wait_ms"),
}

FIND_COORDINATOR = {
    "no type": (wire.FindCoordinatorRequest(keys=["x"]), "type"),
    "no keys": (wire.FindCoordinatorRequest(type=GROUP), "keys"),
    "too many keys": (wire.FindCoordinatorRequest(type=GROUP, keys=MANY), "keys"),
}

DELETE_TOPICS = {
    "nothing": (wire.DeleteTopicsRequest(), "topics"),
    "too many names": (wire.DeleteTopicsRequest(topics=MANY), "topics"),
    "too many ids": (wire.DeleteTopicsRequest(topic_ids=MANY), "topic_ids"),
    "a long id": (wire.DeleteTopicsRequest(topic_ids=[LONG]), "topic_ids"),
}


def listener(*names: str, host: str = "h", port: int = 1) -> wire.RegisterInstanceRequest:
    advertised = (wire.AdvertisedListener(name=name, host=host, port=port) for name in names)
    return wire.RegisterInstanceRequest(listeners=advertised)


REGISTRATION = {
    "an unknown role": (
        wire.RegisterInstanceRequest(role=9),  # type: ignore[arg-type]  # the point
        "role",
    ),
    "a number below 0": (wire.RegisterInstanceRequest(instance_id=-1), "instance_id"),
    "a long cluster id": (wire.RegisterInstanceRequest(cluster_id=LONG), "cluster_id"),
    "an epoch below 1": (wire.RegisterInstanceRequest(claim_epoch=-1), "claim_epoch"),
    "a long token": (wire.RegisterInstanceRequest(claim_token=LONG), "claim_token"),
    "a listener twice": (listener("default"), "listeners"),
    "too many listeners": (listener(*"abcdefgh"), "listeners"),
    "a listener without a name": (listener(""), "listeners.name"),
    "a listener with a long name": (listener(LONG), "listeners.name"),
    "no host": (listener("x", host=""), "listeners.host"),
    "a long host": (listener("x", host="x" * 254), "listeners.host"),
    "a host with a space": (listener("x", host="a b"), "listeners.host"),
    "a host on two lines": (listener("x", host="a\nb"), "listeners.host"),
    "a host in brackets": (listener("x", host="[::1]"), "listeners.host"),
    "no port": (listener("x", port=0), "listeners.port"),
    "a port over 65535": (listener("x", port=65_536), "listeners.port"),
}


@pytest.mark.parametrize(("request_", "field"), METADATA.values(), ids=METADATA)
def test_the_form_of_a_metadata_request_is_checked(
    request_: wire.MetadataRequest, field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_metadata(request_)
    assert caught.value.details == {"field": field}


@pytest.mark.parametrize(("request_", "field"), FIND_COORDINATOR.values(), ids=FIND_COORDINATOR)
def test_the_form_of_a_find_coordinator_request_is_checked(
    request_: wire.FindCoordinatorRequest, field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_find_coordinator(request_)
    assert caught.value.details == {"field": field}


@pytest.mark.parametrize("count", [0, 1_001])
def test_the_form_of_a_create_topics_request_is_checked(count: int) -> None:
    request = wire.CreateTopicsRequest(topics=[wire.NewTopic()] * count)
    with pytest.raises(InvalidRequestError, match=f"topics has {count} entries"):
        check_create_topics(request)


@pytest.mark.parametrize(("request_", "field"), DELETE_TOPICS.values(), ids=DELETE_TOPICS)
def test_the_form_of_a_delete_topics_request_is_checked(
    request_: wire.DeleteTopicsRequest, field: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_delete_topics(request_)
    assert caught.value.details == {"field": field}


@pytest.mark.parametrize(("change", "field"), REGISTRATION.values(), ids=REGISTRATION)
def test_the_form_of_a_registration_is_checked(
    change: wire.RegisterInstanceRequest, field: str
) -> None:
    request = registration(7)
    request.MergeFrom(change)
    with pytest.raises(InvalidRequestError) as caught:
        read_registration(request)
    assert caught.value.details == {"field": field}


def test_a_registration_names_a_listener_at_least() -> None:
    request = registration(7)
    del request.listeners[:]
    with pytest.raises(InvalidRequestError, match="listeners has 0 entries: must be 1 to 8"):
        read_registration(request)


def test_a_registration_in_good_form_is_read() -> None:
    request = registration(7, claim_epoch=3, port=9092)
    request.cluster_id = "c"
    read = read_registration(request)
    assert (read.cluster_id, read.claim_epoch, read.claim_token) == ("c", 3, "a process")
    assert (read.instance.role, read.instance.instance_id) == (ServiceRole.BROKER, 7)
    assert read.instance.listeners == (Listener(name="default", host="broker-7", port=9092),)
