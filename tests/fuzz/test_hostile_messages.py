"""Services get hostile messages and frames: none breaks a handler or disturbs another client.

`make fuzz` sends as many as wanted.
"""

from random import Random

import pytest

from fuzz.attack import attack, attack_from_within
from fuzz.cluster import Cluster
from fuzz.work import leave_open, ordinary_work
from semel_runtime.testing.virtual_time import run_in_virtual_time

MESSAGES = 20_000
ANSWERS = frozenset(
    (
        "OK",
        "UNREADABLE",
        "GROUP_ID_NOT_FOUND",
        "INVALID_CONFIG",
        "INVALID_GROUP_ID",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_REQUEST",
        "INVALID_TRANSACTION_TIMEOUT",
        "INVALID_TXN_STATE",
        "JOINT_OWNER_MISMATCH",
        "PRODUCER_FENCED",
        "TRANSACTIONAL_ID_NOT_FOUND",
        "TRANSACTION_ABORTABLE",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_TOPIC_ID",
    )
)
"""Every seed gets so far that it is answered each of these."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("seed", range(5))
def test_no_client_breaks_a_service_or_hinders_another(seed: int) -> None:
    result = attack(messages=MESSAGES, seed=seed)
    assert not result.violations, "\n".join(result.violations)
    assert sum(result.answers.values()) == MESSAGES
    assert result.answers["OK"] > MESSAGES // 10
    assert result.answers.keys() >= ANSWERS
    assert len(result.answers) > 15
    assert result.frames > MESSAGES // 50


def test_no_service_breaks_another() -> None:
    result = attack_from_within(messages=MESSAGES, seed=0)
    assert not result.violations, "\n".join(result.violations)
    assert sum(result.answers.values()) == MESSAGES


def test_requests_of_every_kind_are_changed() -> None:
    async def work() -> tuple[set[str], set[str]]:
        async with Cluster(Random(0)).started() as cluster, cluster.client() as client:
            await ordinary_work(client, "work", cluster.network)
            await leave_open(client, "work")
            sent = {sample[0].method.path for sample in cluster.samples_of(lambda _: True)}
            served = (
                handler.method.path
                for handlers in cluster.handlers.values()
                for handler in handlers
            )
            return set(served), sent

    served, sent = run_in_virtual_time(work())
    assert served == sent
