"""Random steps of a coordinator's transactions: requests of every kind, and time that passes."""

import contextlib
from collections.abc import Callable

from hypothesis import strategies as st
from transactions_harness import A0, A1, B0, GROUP, TransactionsHarness

from semel_common.errors import SemelError
from semel_common.ids import Participant
from semel_coordinator.transactions.machine import (
    TransactionKey,
    TransactionLimits,
    TransactionsMachine,
)

LIMITS = TransactionLimits(
    transactional_ids_max=3,
    transactions_max=6,
    incomplete_transactions_max=3,
    prepared_transactions_max=2,
    participants_max=3,
    all_participants_max=12,
    step_transactions_max=2,
    step_participants_max=4,
)
IDS = ("app", "other", "third", "fourth")

Step = Callable[[TransactionsHarness], object]


def key_of(harness: TransactionsHarness, transactional_id: str, shift: int) -> TransactionKey:
    """The current transaction of an id, or one some epochs away."""
    (described,) = harness.machine.queries.describe_transactions([transactional_id]).response
    return TransactionKey(described.producer_id, max(0, described.producer_epoch + shift))


def run_all(harness: TransactionsHarness, taken: list[Step]) -> None:
    """Take steps, whatever the answers."""
    for step in taken:
        with contextlib.suppress(SemelError):
            step(harness)


ids = st.sampled_from(IDS)
shifts = st.sampled_from([0, 0, 0, 0, -1, -2, 1])
some_participants = st.lists(st.sampled_from([A0, A1, B0, GROUP]), max_size=4)

steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(
        lambda name, instance, number, keep: (
            lambda h: h.init(name, instance, number, keep_prepared=keep)
        ),
        *(ids, st.sampled_from("abc"), st.integers(1, 3), st.booleans()),
    ),
    st.builds(
        lambda name, shift, those: (
            lambda h: h.prepare(key_of(h, name, shift), those, transactional_id=name)
        ),
        *(ids, shifts, st.none() | some_participants),
    ),
    st.builds(
        lambda name, shift, epoch, commit: (
            lambda h: h.complete_prepared(
                key_of(h, name, shift), epoch, commit=commit, transactional_id=name
            )
        ),
        *(ids, st.integers(-4, 0), st.none() | st.integers(0, 9), st.booleans()),
    ),
    st.builds(
        lambda name, shift, those: (
            lambda h: h.add(key_of(h, name, shift), *those, transactional_id=name)
        ),
        *(ids, shifts, some_participants),
    ),
    st.builds(
        lambda name, shift, those: (
            lambda h: h.commit(key_of(h, name, shift), those, transactional_id=name)
        ),
        *(ids, shifts, st.none() | some_participants),
    ),
    st.builds(
        lambda name, shift, those: (
            lambda h: h.abort(key_of(h, name, shift), those, transactional_id=name)
        ),
        *(ids, shifts, st.none() | some_participants),
    ),
    st.builds(
        lambda name, shift, who: lambda h: h.inquire((key_of(h, name, shift), who)),
        *(ids, shifts, st.sampled_from([A0, GROUP])),
    ),
    st.builds(lambda name, shift: lambda h: h.complete(key_of(h, name, shift)), ids, shifts),
    st.builds(
        lambda count: (
            lambda h: h.complete(*(marker.key for marker in h.machine.markers.pending()[:count]))
        ),
        st.integers(1, 3),
    ),
    st.builds(lambda ms: lambda h: h.tick(after_ms=ms), st.sampled_from([0, 30_000, 60_000])),
    st.builds(lambda ms: lambda h: h.expire(after_ms=ms), st.sampled_from([0, 10**9])),
    st.just(lambda h: h.run(h.machine.give_producer_id())),
    st.just(lambda h: h.run(h.machine.claim())),
)


def told(machine: TransactionsMachine) -> list[tuple[TransactionKey, list[Participant]]]:
    """Whose markers are to be written, and to whom, in their order."""
    return [(marker.key, list(marker.participants)) for marker in machine.markers.pending()]
