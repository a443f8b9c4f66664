"""Every request in every state that a transaction can be in: the tables of protocol.md."""

from collections.abc import Callable

import pytest
from msgspec import structs
from transactions_harness import A0, A1, TransactionsHarness
from transactions_situations import (
    Situation,
    answer_of,
    complete_abort,
    complete_commit,
    empty,
    empty_abort,
    empty_commit,
    fenced,
    fenced_and_complete,
    fenced_while_empty,
    initialised_again,
    never_given,
    older_aborted,
    older_and_preparing,
    older_committed,
    ongoing,
    ongoing_and_late,
    other_producer_id,
    prepare_abort,
    prepare_commit,
    timed_out,
    timed_out_and_complete,
    too_old_to_know,
    unknown_id,
)

from semel_common.errors import SemelError
from semel_coordinator.transactions.machine import TransactionKey, TransactionState
from semel_coordinator.transactions.machine.end_txn import (
    END_TXN_TABLE,
    EndTxnAnswer,
    EpochRow,
    refused,
    row_of,
)
from semel_coordinator.transactions.machine.registration import REGISTRATION_TABLE
from semel_coordinator.transactions.machine.state.transitions import COMPLETED, LEGAL_PREDECESSORS

# -- requests: each returns its answer in a few words -------------------------------------------


def init_again(harness: TransactionsHarness, _: TransactionKey) -> str:
    return f"{harness.init().producer_epoch}"


def init_of_successor(harness: TransactionsHarness, _: TransactionKey) -> str:
    return f"{harness.init(instance='three').producer_epoch}"


def add_known(harness: TransactionsHarness, key: TransactionKey) -> str:
    harness.add(key, A0)
    return f"{len(harness.records)} records"


def add_new(harness: TransactionsHarness, key: TransactionKey) -> str:
    harness.add(key, A1)
    return f"{len(harness.records)} records"


def commit(harness: TransactionsHarness, key: TransactionKey) -> str:
    return f"{harness.commit(key).producer_epoch}, {len(harness.records)} records"


def abort(harness: TransactionsHarness, key: TransactionKey) -> str:
    return f"{harness.abort(key).producer_epoch}, {len(harness.records)} records"


def inquire_of_participant(harness: TransactionsHarness, key: TransactionKey) -> str:
    return _inquire(harness, key, of_participant=True)


def inquire_of_stranger(harness: TransactionsHarness, key: TransactionKey) -> str:
    return _inquire(harness, key, of_participant=False)


def _inquire(harness: TransactionsHarness, key: TransactionKey, *, of_participant: bool) -> str:
    (answer,) = harness.inquire((key, A0 if of_participant else A1))
    verified = " verified" if harness.verified else ""
    return f"{answer.outcome}, {len(harness.records)} records{verified}"


REQUESTS = (
    init_again,
    init_of_successor,
    add_known,
    add_new,
    commit,
    abort,
    inquire_of_participant,
    inquire_of_stranger,
)

FENCED = "PRODUCER_FENCED"
NOTHING_KNOWN = "ABORTED, 0 records verified"
NEVER_GIVEN = "NEVER_GIVEN, 0 records verified"

TABLE: dict[Situation, tuple[str, ...]] = {
    # init again, init of successor, add known, add new, commit, abort, inquire twice
    empty: (
        *("0", "1", "1 records", "1 records", "1, 1 records", "1, 1 records"),
        *("ONGOING, 1 records", "ONGOING, 1 records"),
    ),
    ongoing: (
        *("0", "1", "0 records", "1 records", "1, 2 records", "1, 2 records"),
        *("ONGOING, 0 records", "ONGOING, 1 records"),
    ),
    # No sweep has noticed yet that it is late: a client that comes in time may still commit.
    ongoing_and_late: (
        *("0", "1", "0 records", "1 records", "1, 2 records", "1, 2 records"),
        *("ABORTED, 2 records", "ABORTED, 2 records"),
    ),
    prepare_commit: (
        *("0", "2", *("INVALID_TXN_STATE COMMITTED",) * 2),
        *("1, 0 records", "INVALID_TXN_STATE COMMITTED"),
        *("COMMITTED, 0 records", "ABORTED, 0 records"),
    ),
    complete_commit: (
        *("0", "2", *("INVALID_TXN_STATE COMMITTED",) * 2),
        *("1, 0 records", "INVALID_TXN_STATE COMMITTED", NOTHING_KNOWN, NOTHING_KNOWN),
    ),
    empty_commit: (
        *("0", "2", *("INVALID_TXN_STATE COMMITTED",) * 2),
        *("1, 0 records", "INVALID_TXN_STATE COMMITTED", NOTHING_KNOWN, NOTHING_KNOWN),
    ),
    prepare_abort: (
        *("0", "2", *("INVALID_TXN_STATE ABORTED CLIENT",) * 3, "1, 0 records"),
        *("ABORTED, 0 records", "ABORTED, 0 records"),
    ),
    complete_abort: (
        *("0", "2", *("INVALID_TXN_STATE ABORTED CLIENT",) * 3, "1, 0 records"),
        *(NOTHING_KNOWN, NOTHING_KNOWN),
    ),
    empty_abort: (
        *("0", "2", *("INVALID_TXN_STATE ABORTED CLIENT",) * 3, "1, 0 records"),
        *(NOTHING_KNOWN, NOTHING_KNOWN),
    ),
    timed_out: (
        *("0", "2", *("TRANSACTION_ABORTABLE ABORTED TIMED_OUT 1",) * 3, "1, 0 records"),
        *("ABORTED, 0 records", "ABORTED, 0 records"),
    ),
    timed_out_and_complete: (
        *("0", "2", *("TRANSACTION_ABORTABLE ABORTED TIMED_OUT 1",) * 3, "1, 0 records"),
        *(NOTHING_KNOWN, NOTHING_KNOWN),
    ),
    fenced: (
        *(FENCED, "2", *(f"{FENCED} ABORTED FENCED",) * 4),
        *("ABORTED, 0 records", "ABORTED, 0 records"),
    ),
    fenced_and_complete: (
        *(FENCED, "2", *(f"{FENCED} ABORTED FENCED",) * 4),
        *(NOTHING_KNOWN, NOTHING_KNOWN),
    ),
    fenced_while_empty: (
        *(FENCED, "2", *(f"{FENCED} ABORTED FENCED",) * 4),
        *(NOTHING_KNOWN, NOTHING_KNOWN),
    ),
    initialised_again: (
        *(FENCED, "2", *("INVALID_TXN_STATE ABORTED CLIENT",) * 3, "1, 0 records"),
        *("ABORTED, 0 records", "ABORTED, 0 records"),
    ),
    older_committed: (
        *(FENCED, "3", *(f"{FENCED} COMMITTED",) * 4),
        *(NOTHING_KNOWN, NOTHING_KNOWN),
    ),
    older_aborted: (
        *(FENCED, "3", *(f"{FENCED} ABORTED CLIENT",) * 4),
        *(NOTHING_KNOWN, NOTHING_KNOWN),
    ),
    older_and_preparing: (
        *(FENCED, "3", *(f"{FENCED} COMMITTED",) * 4),
        *("COMMITTED, 0 records", "ABORTED, 0 records"),
    ),
    too_old_to_know: (*("0", "258", FENCED, FENCED, FENCED, FENCED, NOTHING_KNOWN, NOTHING_KNOWN),),
    never_given: (
        *("0", "1", FENCED, FENCED, FENCED, FENCED),
        *(NEVER_GIVEN, NEVER_GIVEN),
    ),
    other_producer_id: (
        *("0", "1", *("INVALID_PRODUCER_ID_MAPPING",) * 4),
        *("ONGOING, 1 records", "ONGOING, 1 records"),
    ),
    unknown_id: (
        *("0", "0", *("INVALID_PRODUCER_ID_MAPPING",) * 4),
        *(NEVER_GIVEN, NEVER_GIVEN),
    ),
}


@pytest.mark.parametrize(
    ("situation", "request_", "expected"),
    [
        pytest.param(situation, request, answer, id=f"{situation.__name__}-{request.__name__}")
        for situation, answers in TABLE.items()
        for request, answer in zip(REQUESTS, answers, strict=True)
    ],
)
def test_every_request_is_answered_as_the_tables_say(
    situation: Situation,
    request_: Callable[[TransactionsHarness, TransactionKey], str],
    expected: str,
) -> None:
    """C-070, among all others."""
    harness = TransactionsHarness()
    key = situation(harness)
    assert answer_of(lambda: request_(harness, key)) == expected


@pytest.mark.parametrize("situation", TABLE, ids=lambda situation: situation.__name__)
def test_a_restart_changes_no_answer(
    situation: Situation,
) -> None:
    for request, expected in zip(REQUESTS, TABLE[situation], strict=True):
        harness = TransactionsHarness()
        key = situation(harness)
        harness.restart()
        assert answer_of(lambda: request(harness, key)) == expected  # noqa: B023 - called at once


def test_tables_name_every_row_and_every_state() -> None:
    assert set(END_TXN_TABLE) == set(REGISTRATION_TABLE) == set(EpochRow)
    assert set(LEGAL_PREDECESSORS) == set(TransactionState)
    assert all(before in LEGAL_PREDECESSORS[after] for before, after in COMPLETED.items())


def test_no_answer_to_the_fenced_names_an_epoch() -> None:
    harness = TransactionsHarness()
    key = fenced(harness)
    for request in (add_known, commit, abort):
        with pytest.raises(SemelError) as caught:
            request(harness, key)
        assert "next_epoch" not in caught.value.details
        assert "epoch 1" not in caught.value.message


@pytest.mark.parametrize("answer", [EndTxnAnswer.DECIDE, EndTxnAnswer.SUCCESS])
def test_a_success_is_never_made_an_error(answer: EndTxnAnswer) -> None:
    harness = TransactionsHarness()
    key = harness.init()
    producer = harness.machine._state.producers[key.producer_id]
    with pytest.raises(AssertionError, match="is no error"):
        refused(producer, key.producer_epoch, answer)


@pytest.mark.parametrize(
    ("situation", "message"),
    [
        (prepare_commit, "from CompleteCommit to PrepareCommit"),
        (prepare_abort, "from CompleteAbort to PrepareAbort"),
    ],
)
def test_replay_asserts_the_table_of_states(situation: Situation, message: str) -> None:
    """C-085, C-106: an illegal transition never overwrites the present state."""
    harness = TransactionsHarness()
    key = situation(harness)
    decided = harness.machine._state.decided[key]
    harness.complete(key)
    with pytest.raises(AssertionError, match=message):
        harness.machine.replay(99, decided)


@pytest.mark.parametrize(
    "situation", [complete_commit, complete_abort, timed_out, fenced, older_committed, never_given]
)
@pytest.mark.parametrize(
    "transactional_id",
    ["{", "{0}", "{epoch:3000000000}", "{reason.__class__.__mro__}", "%s%n", "${epoch}"],
)
def test_the_id_in_a_refusal_is_no_template(situation: Situation, transactional_id: str) -> None:
    harness = TransactionsHarness()
    key = situation(harness)
    known = harness.machine._state.producers[key.producer_id]
    producer = structs.replace(known, transactional_id=transactional_id)
    cell = END_TXN_TABLE[row_of(producer, key.producer_epoch)]
    answer = cell.commit if cell.commit is not EndTxnAnswer.SUCCESS else cell.abort
    message = refused(producer, key.producer_epoch, answer).message
    assert message.startswith(f"{transactional_id!r}: ")
    assert f"producer epoch {key.producer_epoch} " in message
