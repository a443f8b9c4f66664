"""A part that is missing names the instance that does not answer, and what to do."""

from aiosemel import ClusterDescription, InstanceDescription, ServiceRole
from aiosemel.errors import InconsistentClusterIdError, RequestTimedOutError
from semel_console.web.instances import Instances

ADDRESS = {"address": "127.0.0.1:9092"}
INSTANCE = InstanceDescription(
    role=ServiceRole.COORDINATOR,
    instance_id=0,
    host="127.0.0.1",
    port=9092,
    claim_epoch=1,
    last_registered_ms=None,
    leader_partitions=0,
    is_controller=True,
)
CLUSTER = ClusterDescription(
    cluster_id="c",
    version=1,
    transaction_log_partitions=1,
    group_partitions=1,
    topic_count=0,
    partition_count=0,
    instances=(INSTANCE,),
)


def test_an_instance_that_does_not_answer_is_named_once_it_is_known() -> None:
    instances, error = Instances(), RequestTimedOutError("no answer in time", **ADDRESS)
    assert instances.explain("The list", error).why == "no answer in time"
    instances.learn(CLUSTER)
    why = instances.explain("The list", error).why
    assert why == "coordinator-0 does not answer: no answer in time"


def test_another_cluster_at_the_address_is_said_to_need_a_new_console() -> None:
    instances = Instances()
    instances.learn(CLUSTER)
    error = InconsistentClusterIdError("this client belongs to cluster c", **ADDRESS)
    why = instances.explain("The list", error).why
    assert "Another cluster" in why
    assert "start it again" in why
    assert "does not answer" not in why


def test_addresses_in_a_sentence_have_the_names_of_their_instances() -> None:
    instances = Instances()
    instances.learn(CLUSTER)
    error = RequestTimedOutError("no time is left; last: 127.0.0.1:9092 and 127.0.0.1:90921")
    why = instances.explain("The list", error).why
    assert why == "no time is left; last: 127.0.0.1:9092 (coordinator-0) and 127.0.0.1:90921"
