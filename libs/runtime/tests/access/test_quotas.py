"""Quotas: who is over is told how long to wait, and refused past the hard limit; nobody else is."""

import pytest

from semel.group.v1.group_pb2 import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from semel_common.errors import InvalidRequestError, ThrottlingQuotaExceededError
from semel_runtime.access.client_quotas import ClientQuota, altered
from semel_runtime.access.quotas import Quotas, QuotaTimes
from semel_runtime.server.principal import Principal

ALICE, BOB = Principal(name="alice"), Principal(name="bob")
TIMES = QuotaTimes(window_ms=1_000, debt_max_ms=2_000)


class Limited:
    """Quotas with a clock of their own."""

    def __init__(self, *quotas: ClientQuota) -> None:
        self.now = 100.0
        self.quotas = Quotas(TIMES, lambda: self.now)
        self.quotas.update(quotas)

    def ask(self, principal: Principal = ALICE, size: int = 0) -> int:
        """Make a request whose transactional id has a size; return the throttle time."""
        self.quotas.admit(principal, TxnOffsetCommitRequest(transactional_id="x" * size))
        response = TxnOffsetCommitResponse()
        self.quotas.charge(principal, response)
        return response.throttle_time_ms


def quota(user: str = "alice", **limits: float) -> ClientQuota:
    return ClientQuota(user=user, limits=tuple(sorted(limits.items())))


def test_within_the_rate_nobody_waits() -> None:
    limited = Limited(quota(request_rate=10))
    for _ in range(100):
        assert limited.ask() == 0
        limited.now += 0.1


def test_a_burst_of_one_window_is_free_then_the_wait_is_as_long_as_the_debt() -> None:
    limited = Limited(quota(request_rate=10))
    assert [limited.ask() for _ in range(10)] == [0] * 10
    assert limited.ask() == pytest.approx(100, abs=2)
    assert limited.ask() == pytest.approx(200, abs=2)


def test_who_waits_as_told_is_never_refused_and_gets_the_rate() -> None:
    limited = Limited(quota(request_rate=10))
    begun = limited.now
    for _ in range(200):
        limited.now += limited.ask() / 1000
    assert limited.now - begun == pytest.approx(19, rel=0.05)


def refused(limited: Limited) -> list[int]:
    """Ask a hundred times without waiting; return what those that are refused are told."""
    told: list[int] = []
    for _ in range(100):
        try:
            limited.ask()
        except ThrottlingQuotaExceededError as error:
            told.append(int(error.details["throttle_time_ms"]))
    return told


def test_who_does_not_wait_is_refused_past_the_hard_limit_and_told_for_how_long() -> None:
    limited = Limited(quota(request_rate=10))
    told = refused(limited)
    assert len(told) == 100 - 31
    limited.now += told[0] / 1000
    assert limited.ask() == pytest.approx(100, abs=2)


def test_a_refusal_costs_nothing() -> None:
    assert len(set(refused(Limited(quota(request_rate=10))))) == 1


def test_bytes_count_on_their_way_in() -> None:
    limited = Limited(quota(producer_byte_rate=1_000))
    assert limited.ask(size=500) == 0
    assert limited.ask(size=1_500) == pytest.approx(1_000, abs=20)


def test_bytes_count_on_their_way_out() -> None:
    limited = Limited(quota(consumer_byte_rate=0.001))
    limited.quotas.admit(ALICE, TxnOffsetCommitRequest())
    response = TxnOffsetCommitResponse(throttle_time_ms=1)
    limited.quotas.charge(ALICE, response)
    assert response.throttle_time_ms > 1_000


def test_one_user_does_not_pay_for_another() -> None:
    limited = Limited(quota("", request_rate=10))
    for _ in range(20):
        limited.ask(ALICE)
    assert limited.ask(BOB) == 0


def test_own_limits_take_the_place_of_everybodys() -> None:
    limited = Limited(quota("", request_rate=1), quota("alice", producer_byte_rate=1_000_000))
    assert [limited.ask(ALICE) for _ in range(5)] == [0] * 5
    assert [limited.ask(BOB) > 0 for _ in range(3)] == [False, True, True]


def test_who_has_no_limits_is_not_limited() -> None:
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


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), 1e30])
def test_a_rate_is_a_number_that_something_can_pass(value: float) -> None:
    with pytest.raises(InvalidRequestError):
        altered(quota(), set_={"request_rate": value})


def test_limits_are_changed_one_by_one() -> None:
    after = altered(
        quota(request_rate=1, producer_byte_rate=2),
        set_={"consumer_byte_rate": 3},
        remove=["request_rate"],
    )
    assert after == quota(consumer_byte_rate=3, producer_byte_rate=2)


@pytest.mark.parametrize(
    ("set_", "remove"),
    [({"unknown": 1.0}, ()), ({}, ("unknown",)), ({"request_rate": 1.0}, ("request_rate",))],
)
def test_a_limit_that_there_is_none_of_is_refused(
    set_: dict[str, float], remove: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidRequestError):
        altered(quota(), set_=set_, remove=remove)
