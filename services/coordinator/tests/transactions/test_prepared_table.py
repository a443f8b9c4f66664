"""Prepared transactions: every request in every state."""

from collections.abc import Callable

import pytest
from transactions_harness import A0, A1, TransactionsHarness
from transactions_situations import (
    Situation,
    aborted_by_a_successor,
    aborted_by_an_operator,
    answer_of,
    completed_with_abort,
    completed_with_commit,
    empty,
    fenced,
    kept_by_a_successor,
    never_given,
    ongoing,
    prepare_commit,
    prepared,
    prepared_and_gone_on,
    prepared_while_empty,
    timed_out,
    too_old_to_know,
    unknown_id,
)

from semel_coordinator.transactions.machine import TransactionKey
from semel_coordinator.transactions.machine.end_txn import EpochRow
from semel_coordinator.transactions.machine.prepared import PREPARE_TABLE

# -- requests: each returns its answer in a few words -------------------------------------------


def prepare(harness: TransactionsHarness, key: TransactionKey) -> str:
    return f"{harness.prepare(key).producer_epoch}, {len(harness.records)} records"


def add(harness: TransactionsHarness, key: TransactionKey) -> str:
    harness.add(key, A1)
    return f"{len(harness.records)} records"


def end_commit(harness: TransactionsHarness, key: TransactionKey) -> str:
    return f"{harness.commit(key).producer_epoch}, {len(harness.records)} records"


def end_abort(harness: TransactionsHarness, key: TransactionKey) -> str:
    return f"{harness.abort(key).producer_epoch}, {len(harness.records)} records"


def commit(harness: TransactionsHarness, key: TransactionKey) -> str:
    return _complete(harness, key, _current(harness, key), commit=True)


def abort(harness: TransactionsHarness, key: TransactionKey) -> str:
    return _complete(harness, key, _current(harness, key), commit=False)


def commit_by_operator(harness: TransactionsHarness, key: TransactionKey) -> str:
    return _complete(harness, key, None, commit=True)


def commit_by_old_epoch(harness: TransactionsHarness, key: TransactionKey) -> str:
    return _complete(harness, key, key.producer_epoch, commit=True)


def inquire(harness: TransactionsHarness, key: TransactionKey) -> str:
    (answer,) = harness.inquire((key, A0))
    return answer.outcome.value


def _current(harness: TransactionsHarness, key: TransactionKey) -> int | None:
    return harness.machine.current_epoch(key.producer_id)


def _complete(
    harness: TransactionsHarness, key: TransactionKey, producer_epoch: int | None, *, commit: bool
) -> str:
    harness.complete_prepared(key, producer_epoch, commit=commit)
    return f"{len(harness.records)} records"


REQUESTS = (
    *(prepare, add, end_commit, end_abort),
    *(commit, abort, commit_by_operator, commit_by_old_epoch, inquire),
)

FENCED = "PRODUCER_FENCED"
INVALID = "INVALID_TXN_STATE"
COMMITTED, ABORTED, PREPARED = f"{INVALID} COMMITTED", f"{INVALID} ABORTED", f"{INVALID} PREPARED"
SAME = "0 records"
MAPPING = "INVALID_PRODUCER_ID_MAPPING"
TIMED_OUT = "TRANSACTION_ABORTABLE ABORTED TIMED_OUT 1"
BY_OPERATOR = "TRANSACTION_ABORTABLE ABORTED OPERATOR 1"
BY_CLIENT = f"{ABORTED} CLIENT"

TABLE: dict[Situation, tuple[str, ...]] = {
    # prepare, add, EndTxn twice, then completion: commit, abort, by an operator, by the old epoch
    empty: (
        *("1, 2 records", "1 records", "1, 1 records", "1, 1 records"),
        *(INVALID, INVALID, INVALID, INVALID, "ONGOING"),
    ),
    ongoing: (
        *("1, 2 records", "1 records", "1, 2 records", "1, 2 records"),
        *(INVALID, INVALID, INVALID, INVALID, "ONGOING"),
    ),
    prepared: (
        *("1, 0 records", PREPARED, PREPARED, "1, 2 records"),
        *("2 records", "2 records", "2 records", "2 records", "ONGOING"),
    ),
    prepared_while_empty: (
        *("1, 0 records", PREPARED, PREPARED, "1, 3 records"),
        *("3 records", "3 records", "3 records", "3 records", "ONGOING"),
    ),
    prepared_and_gone_on: (
        *(f"{FENCED} PREPARED", f"{FENCED} PREPARED", f"{FENCED} PREPARED", f"{FENCED} PREPARED"),
        *("2 records", "2 records", "2 records", "2 records", "ONGOING"),
    ),
    kept_by_a_successor: (
        *(f"{FENCED} PREPARED", f"{FENCED} PREPARED", f"{FENCED} PREPARED", f"{FENCED} PREPARED"),
        *("2 records", "2 records", "2 records", f"{FENCED} PREPARED", "ONGOING"),
    ),
    aborted_by_a_successor: (
        *(f"{FENCED} ABORTED FENCED",) * 4,
        *(ABORTED, SAME, ABORTED, ABORTED, "ABORTED"),
    ),
    completed_with_commit: (
        *(COMMITTED, COMMITTED, "1, 0 records", COMMITTED),
        *(SAME, COMMITTED, SAME, SAME, "COMMITTED"),
    ),
    completed_with_abort: (
        *(BY_CLIENT, BY_CLIENT, BY_CLIENT, "1, 0 records"),
        *(ABORTED, SAME, ABORTED, ABORTED, "ABORTED"),
    ),
    aborted_by_an_operator: (
        *(BY_OPERATOR, BY_OPERATOR, BY_OPERATOR, "1, 0 records"),
        *(ABORTED, SAME, ABORTED, ABORTED, "ABORTED"),
    ),
    prepare_commit: (
        *(COMMITTED, COMMITTED, "1, 0 records", COMMITTED),
        *(SAME, COMMITTED, SAME, SAME, "COMMITTED"),
    ),
    timed_out: (
        *(TIMED_OUT, TIMED_OUT, TIMED_OUT, "1, 0 records"),
        *(ABORTED, SAME, ABORTED, ABORTED, "ABORTED"),
    ),
    fenced: (
        *(f"{FENCED} ABORTED FENCED",) * 4,
        *(ABORTED, SAME, ABORTED, ABORTED, "ABORTED"),
    ),
    too_old_to_know: (*(FENCED,) * 4, *(INVALID,) * 4, "ABORTED"),
    never_given: (*(FENCED,) * 8, "NEVER_GIVEN"),
    unknown_id: (*(MAPPING,) * 8, "NEVER_GIVEN"),
}


@pytest.mark.parametrize("restart", [False, True], ids=["live", "restarted"])
@pytest.mark.parametrize(
    ("situation", "request_", "expected"),
    [
        pytest.param(situation, request, answer, id=f"{situation.__name__}-{request.__name__}")
        for situation, answers in TABLE.items()
        for request, answer in zip(REQUESTS, answers, strict=True)
    ],
)
def test_every_request_is_answered_as_the_table_says(
    situation: Situation,
    request_: Callable[[TransactionsHarness, TransactionKey], str],
    expected: str,
    restart: bool,
) -> None:
    harness = TransactionsHarness()
    key = situation(harness)
    if restart:
        harness.restart()
    assert answer_of(lambda: request_(harness, key)) == expected


def test_the_table_names_every_row() -> None:
    assert set(PREPARE_TABLE) == set(EpochRow)
