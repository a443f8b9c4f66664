"""The shares of callers: the bound of each, and the callers that wait."""

import asyncio

import pytest

from semel_runtime.authentication.principal import Origin, Principal
from semel_runtime.server.limits.caller_shares import Ledger, Shares, host_of_address, host_of_peer
from semel_runtime.server.limits.server_limits import ServerLimits

LIMITS = ServerLimits(
    streams_max=10,
    in_flight_max_bytes=1_000,
    principal_share_percent=50,
    cluster_reserve_percent=20,
)


def of_user(ledger: Ledger, name: str, *, is_cluster: bool = False) -> Shares:
    return ledger.of(Origin(listener="l", principal=Principal(name=name, is_cluster=is_cluster)))


def test_one_principal_takes_its_share_and_others_theirs_and_the_cluster_the_reserve() -> None:
    ledger = Ledger(LIMITS)
    ada, bob = of_user(ledger, "ada").streams, of_user(ledger, "bob").streams
    own = of_user(ledger, "service", is_cluster=True).streams
    taken = []
    for share in (ada, bob, own):
        while share.has_room():
            share.take()
        taken.append(share.held)
    assert taken == [5, 3, 2]
    assert "its share is 5" in ada.why_full()
    assert "2 of 10 are kept for the cluster itself" in bob.why_full()
    ada.give_back()
    own.take()
    assert not ada.has_room(), "the cluster has taken what was given back"


def test_the_cluster_itself_has_no_share() -> None:
    own = of_user(Ledger(LIMITS), "service", is_cluster=True).streams
    own.take(9)
    assert own.has_room()


def test_listeners_and_connections_of_one_principal_share_its_books() -> None:
    ledger = Ledger(LIMITS)
    first = ledger.of(Origin(listener="a", principal=Principal(name="ada")))
    first.streams.take()
    again = ledger.of(Origin(listener="b", principal=Principal(name="ada", expires_at=1.0)))
    assert again.streams.held == 1


def test_a_caller_with_nothing_in_hand_may_take_a_thing_larger_than_its_share() -> None:
    ledger = Ledger(LIMITS)
    ada, bob = of_user(ledger, "ada").in_flight_bytes, of_user(ledger, "bob").in_flight_bytes
    assert ada.has_room(700)
    ada.take(700)
    assert not ada.has_room(1)
    assert not bob.has_room(101)


async def test_streams_that_wait_have_their_turn_in_order_when_there_is_room() -> None:
    share = of_user(Ledger(LIMITS), "ada").in_flight_bytes
    share.take(500)
    turns: list[str] = []

    def take(name: str, amount: int) -> None:
        share.take(amount)
        turns.append(name)

    share.wait("large", 400, lambda: take("large", 400))
    share.wait("small", 50, lambda: take("small", 50))
    share.wait("gone", 50, lambda: take("gone", 50))
    share.leave("gone")
    share.give_back(300)
    await asyncio.sleep(0)
    assert turns == [], "a small one does not overtake"
    share.give_back(200)
    await asyncio.sleep(0)
    assert turns == ["large", "small"]


async def test_a_caller_that_waits_for_the_others_is_called_when_they_give_back() -> None:
    ledger = Ledger(LIMITS)
    ada, bob = of_user(ledger, "ada").in_flight_bytes, of_user(ledger, "bob").in_flight_bytes
    ada.take(500)
    bob.take(300)
    called = asyncio.Event()
    bob.wait("stream", 100, called.set)
    ada.give_back(200)
    await called.wait()


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("ipv4:10.0.0.7:5021", "10.0.0.7"),
        ("ipv6:%5B::1%5D:5021", "::/64"),
        ("ipv6:[2001:db8:1:2:3:4:5:6]:5021", "2001:db8:1:2::/64"),
        ("ipv6:%5B2001:db8:1:2:ffff::9%5D:1", "2001:db8:1:2::/64"),
        ("ipv6:%5Bfe80::1%25eth0%5D:5021", "fe80::/64"),
        ("ipv6:%5B::ffff:10.0.0.7%5D:5021", "10.0.0.7"),
        ("unix:/run/semel", "unix"),
        ("unix:", "unix"),
    ],
)
def test_an_address_is_one_host_whatever_its_port(peer: str, host: str) -> None:
    assert host_of_peer(peer) == host


def test_anonymous_callers_of_one_host_share_and_other_hosts_do_not() -> None:
    ledger = Ledger(LIMITS)
    first = ledger.of(Origin(listener="l", host=host_of_address("10.0.0.7")))
    first.streams.take(5)
    assert not ledger.of(Origin(listener="l", host="10.0.0.7")).streams.has_room()
    assert ledger.of(Origin(listener="l", host="10.0.0.8")).streams.has_room()
