"""Quotas: a user over its quota waits, and is refused past the hard limit; other users go on."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.group.v1.group_pb2 import (
    GroupListing,
    ListGroupsRequest,
    ListGroupsResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from semel_common.errors import InvalidRequestError, ThrottlingQuotaExceededError
from semel_common.wire import methods
from semel_runtime.access.client_quotas import LIMITS, ClientQuota, altered
from semel_runtime.access.quotas import Quotas, QuotaTimes
from semel_runtime.authentication.principal import Principal

ALICE, BOB = Principal(name="alice"), Principal(name="bob")
COMMIT = methods.TXN_OFFSET_COMMIT.path
TIMES = QuotaTimes(window_ms=1_000, debt_max_ms=2_000)


class Limited:
    """Quotas with a clock of their own."""

    def __init__(self, *quotas: ClientQuota) -> None:
        self.now = 100.0
        self.quotas = Quotas(TIMES, lambda: self.now)
        self.quotas.update(quotas)

    def ask(self, principal: Principal = ALICE, size: int = 0, path: str = COMMIT) -> int:
        """Make a request whose transactional id has a size; return the throttle time."""
        request = TxnOffsetCommitRequest(transactional_id="x" * size)
        self.quotas.admit(principal, path, request)
        response = TxnOffsetCommitResponse()
        self.quotas.charge(principal, path, response)
        return response.throttle_time_ms


def quota(user: str = "alice", **limits: float) -> ClientQuota:
    return ClientQuota(user=user, limits=tuple(sorted(limits.items())))


def test_within_the_rate_no_user_waits() -> None:
    limited = Limited(quota(request_rate=10))
    for _ in range(100):
        assert limited.ask() == 0
        limited.now += 0.1


def test_a_burst_of_one_window_is_free_then_the_wait_is_as_long_as_the_debt() -> None:
    limited = Limited(quota(request_rate=10))
    assert [limited.ask() for _ in range(10)] == [0] * 10
    assert limited.ask() == pytest.approx(100, abs=2)
    assert limited.ask() == pytest.approx(200, abs=2)


def test_a_user_that_waits_as_told_is_never_refused_and_gets_the_rate() -> None:
    limited = Limited(quota(request_rate=10))
    begun = limited.now
    for _ in range(200):
        limited.now += limited.ask() / 1000
    assert limited.now - begun == pytest.approx(19, rel=0.05)


def refused(limited: Limited) -> list[int]:
    """Ask a hundred times without waiting; return the errors."""
    told: list[int] = []
    for _ in range(100):
        try:
            limited.ask()
        except ThrottlingQuotaExceededError as error:
            told.append(int(error.details["throttle_time_ms"]))
    return told


def test_a_user_that_does_not_wait_is_refused_past_the_hard_limit_and_told_for_how_long() -> None:
    limited = Limited(quota(request_rate=10))
    told = refused(limited)
    assert len(told) == 100 - 31
    limited.now += told[0] / 1000
    assert limited.ask() == pytest.approx(100, abs=2)


def test_a_refusal_costs_nothing() -> None:
    assert len(set(refused(Limited(quota(request_rate=10))))) == 1


def test_bytes_count_on_their_way_in() -> None:
    limited = Limited(quota(producer_byte_rate=2_000))
    assert limited.ask(size=1_000) == 0
    assert limited.ask(size=3_000) == pytest.approx(1_000, abs=20)


def test_bytes_count_on_their_way_out() -> None:
    limited = Limited(quota(consumer_byte_rate=1_024))
    path = methods.LIST_GROUPS.path
    limited.quotas.admit(ALICE, path, ListGroupsRequest())
    response = ListGroupsResponse(groups=[GroupListing(group_id="x" * 2_048)])
    limited.quotas.charge(ALICE, path, response)
    assert response.throttle_time_ms == pytest.approx(1_000, abs=20)


def test_one_user_does_not_pay_for_another() -> None:
    limited = Limited(quota("", request_rate=10))
    for _ in range(20):
        limited.ask(ALICE)
    assert limited.ask(BOB) == 0


def test_own_limits_take_the_place_of_everybodys() -> None:
    limited = Limited(quota("", request_rate=1), quota("alice", producer_byte_rate=1_000_000))
    assert [limited.ask(ALICE) for _ in range(5)] == [0] * 5
    assert [limited.ask(BOB) > 0 for _ in range(3)] == [False, True, True]


def test_a_user_without_limits_is_not_limited() -> None:
    limited = Limited(quota("bob", request_rate=1))
    assert [limited.ask(ALICE, size=10_000) for _ in range(100)] == [0] * 100


def test_other_limits_of_others_do_not_forgive_a_debt() -> None:
    limited = Limited(quota(request_rate=10))
    for _ in range(20):
        limited.ask()
    limited.quotas.update((quota(request_rate=10), quota("bob", request_rate=1)))
    assert limited.ask() > 0
    limited.quotas.update((quota(request_rate=100),))
    assert limited.ask() == 0


@pytest.mark.parametrize("value", [0, -1, 0.999, 1e-320, float("inf"), float("nan"), 1e30])
def test_a_rate_is_a_number_that_something_can_pass(value: float) -> None:
    with pytest.raises(InvalidRequestError, match=r"must be 1 to 1\.1259e\+15 requests per second"):
        altered(quota(), set_={"request_rate": value})
    with pytest.raises(InvalidRequestError, match="must be 1024 to"):
        altered(quota(), set_={"producer_byte_rate": value})


@given(
    rate=st.floats(),
    name=st.sampled_from([*LIMITS, "a limit of a later release"]),
    sizes=st.lists(st.tuples(st.integers(0, 1 << 26), st.floats(0, 100)), max_size=20),
)
def test_whatever_a_rate_is_no_call_fails_and_no_wait_is_longer_than_the_longest(
    rate: float, name: str, sizes: list[tuple[int, float]]
) -> None:
    """An earlier release took any positive number, and journals hold what it took."""
    limited = Limited(ClientQuota(user="alice", limits=((name, rate),)))
    message = TxnOffsetCommitRequest()
    for size, pause_s in sizes:
        limited.now += pause_s
        with patch.object(TxnOffsetCommitRequest, "ByteSize", lambda _, size=size: size):
            try:
                told = limited.ask()
            except ThrottlingQuotaExceededError as error:
                told = int(error.details["throttle_time_ms"])
        assert 0 <= told <= TIMES.wait_max_ms + 1
    limited.now += TIMES.wait_max_ms / 1000 + 1
    limited.quotas.admit(ALICE, COMMIT, message)


@pytest.mark.parametrize(
    "rate", [1e-320, 0.001, 0.0, -1.0, float("inf"), float("-inf"), float("nan")]
)
def test_a_rate_of_an_earlier_release_locks_no_user_out(rate: float) -> None:
    limited = Limited(quota("", request_rate=rate))
    waits = []
    for _ in range(10):
        waits.append(limited.ask())
        limited.now += waits[-1] / 1000
    assert max(waits) <= 1_001


def test_quotas_can_be_changed_and_transactions_ended_whatever_the_debt() -> None:
    limited = Limited(quota(request_rate=1))
    assert len(refused(limited)) > 50
    for path in sorted(methods.NEVER_THROTTLED):
        assert limited.ask(path=path) == 0
    with pytest.raises(ThrottlingQuotaExceededError):
        limited.ask()


def test_limits_are_changed_one_by_one() -> None:
    after = altered(
        quota(request_rate=1, producer_byte_rate=2),
        set_={"consumer_byte_rate": 3_000},
        remove=["request_rate"],
    )
    assert after == quota(consumer_byte_rate=3_000, producer_byte_rate=2)


@pytest.mark.parametrize(
    ("set_", "remove"),
    [({"unknown": 1.0}, ()), ({}, ("unknown",)), ({"request_rate": 1.0}, ("request_rate",))],
)
def test_a_limit_that_there_is_none_of_is_refused(
    set_: dict[str, float], remove: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidRequestError):
        altered(quota(), set_=set_, remove=remove)
