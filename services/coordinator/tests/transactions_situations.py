"""What has become of a transaction before a request comes: each returns the key to ask about."""

from collections.abc import Callable

from transactions_harness import A0, TIMEOUT_MS, TransactionsHarness, after

from semel_common.errors import SemelError
from semel_coordinator.transactions.machine import TransactionKey

Situation = Callable[[TransactionsHarness], TransactionKey]


def empty(harness: TransactionsHarness) -> TransactionKey:
    return harness.init()


def ongoing(harness: TransactionsHarness) -> TransactionKey:
    key = harness.init()
    harness.add(key, A0)
    return key


def ongoing_and_late(harness: TransactionsHarness) -> TransactionKey:
    key = ongoing(harness)
    harness.now_ms += TIMEOUT_MS
    return key


def prepare_commit(harness: TransactionsHarness) -> TransactionKey:
    key = ongoing(harness)
    harness.commit(key)
    return key


def complete_commit(harness: TransactionsHarness) -> TransactionKey:
    key = prepare_commit(harness)
    harness.complete(key)
    return key


def empty_commit(harness: TransactionsHarness) -> TransactionKey:
    key = harness.init()
    harness.commit(key)
    return key


def prepare_abort(harness: TransactionsHarness) -> TransactionKey:
    key = ongoing(harness)
    harness.abort(key)
    return key


def complete_abort(harness: TransactionsHarness) -> TransactionKey:
    key = prepare_abort(harness)
    harness.complete(key)
    return key


def empty_abort(harness: TransactionsHarness) -> TransactionKey:
    key = harness.init()
    harness.abort(key)
    return key


def timed_out(harness: TransactionsHarness) -> TransactionKey:
    key = ongoing(harness)
    harness.tick(after_ms=TIMEOUT_MS)
    return key


def timed_out_and_complete(harness: TransactionsHarness) -> TransactionKey:
    key = timed_out(harness)
    harness.complete(key)
    return key


def fenced(harness: TransactionsHarness) -> TransactionKey:
    key = ongoing(harness)
    harness.init(instance="two")
    return key


def fenced_and_complete(harness: TransactionsHarness) -> TransactionKey:
    key = fenced(harness)
    harness.complete(key)
    return key


def fenced_while_empty(harness: TransactionsHarness) -> TransactionKey:
    key = harness.init()
    harness.init(instance="two")
    return key


def initialised_again(harness: TransactionsHarness) -> TransactionKey:
    key = ongoing(harness)
    harness.init(number=2)
    return key


def older_committed(harness: TransactionsHarness) -> TransactionKey:
    key = complete_commit(harness)
    harness.init(instance="two")
    return key


def older_aborted(harness: TransactionsHarness) -> TransactionKey:
    key = complete_abort(harness)
    harness.init(instance="two")
    return key


def older_and_preparing(harness: TransactionsHarness) -> TransactionKey:
    key = prepare_commit(harness)
    harness.init(instance="two")
    return key


def too_old_to_know(harness: TransactionsHarness) -> TransactionKey:
    key = current = harness.init()
    for _ in range(257):
        current = harness.commit(current)
    return key


def never_given(harness: TransactionsHarness) -> TransactionKey:
    return after(harness.init())


def other_producer_id(harness: TransactionsHarness) -> TransactionKey:
    harness.init()
    return TransactionKey(harness.init("other").producer_id, 0)


def unknown_id(harness: TransactionsHarness) -> TransactionKey:
    del harness
    return TransactionKey(1, 0)


def prepared(harness: TransactionsHarness) -> TransactionKey:
    key = ongoing(harness)
    harness.prepare(key)
    return key


def prepared_while_empty(harness: TransactionsHarness) -> TransactionKey:
    key = harness.init()
    harness.prepare(key)
    return key


def prepared_and_gone_on(harness: TransactionsHarness) -> TransactionKey:
    key = prepared(harness)
    harness.add(after(key), A0)
    harness.commit(after(key))
    return key


def kept_by_a_successor(harness: TransactionsHarness) -> TransactionKey:
    key = prepared(harness)
    harness.init(instance="two", keep_prepared=True)
    return key


def aborted_by_a_successor(harness: TransactionsHarness) -> TransactionKey:
    key = prepared(harness)
    harness.init(instance="two")
    return key


def completed_with_commit(harness: TransactionsHarness) -> TransactionKey:
    key = prepared(harness)
    harness.complete_prepared(key, after(key).producer_epoch)
    return key


def completed_with_abort(harness: TransactionsHarness) -> TransactionKey:
    key = prepared(harness)
    harness.complete_prepared(key, after(key).producer_epoch, commit=False)
    return key


def aborted_by_an_operator(harness: TransactionsHarness) -> TransactionKey:
    key = prepared(harness)
    harness.complete_prepared(key, commit=False)
    return key


# -- what came of it ----------------------------------------------------------------------------


def answer_of(request: Callable[[], str]) -> str:
    """Return the answer in a few words, or the error with its details."""
    try:
        return request()
    except SemelError as error:
        facts = (error.details.get(name) for name in ("outcome", "reason", "next_epoch"))
        return " ".join((error.code.name, *(fact for fact in facts if fact is not None)))
