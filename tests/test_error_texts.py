"""The advice for each error has one text, which is the source of all other texts."""

import re
import sys
from pathlib import Path

import pytest

from semel_common import errors
from semel_common.error_codes import ErrorClass
from semel_common.errors import SemelError

ROOT = Path(__file__).resolve().parent.parent
GENERAL: dict[ErrorClass, type[SemelError]] = {
    ErrorClass.RETRIABLE: errors.RetriableError,
    ErrorClass.REFRESH_RETRIABLE: errors.RefreshRetriableError,
    ErrorClass.ABORTABLE_TRANSACTION: errors.AbortableTransactionError,
    ErrorClass.APPLICATION_RECOVERABLE: errors.ApplicationRecoverableError,
    ErrorClass.INVALID_REQUEST: errors.InvalidRequestError,
    ErrorClass.INVALID_CONFIGURATION: errors.InvalidConfigurationError,
    ErrorClass.FATAL: SemelError,
}
ABORTED = "abort the transaction as `ABORTABLE_TRANSACTION` says"


def text_of(cls: type[SemelError]) -> str:
    return " ".join((cls.__doc__ or "").split())


@pytest.mark.parametrize("error_class", ErrorClass, ids=lambda each: each.name)
def test_every_class_says_what_to_do_outside_and_inside_a_transaction(
    error_class: ErrorClass,
) -> None:
    text = text_of(GENERAL[error_class])
    assert "Outside of a transaction: " in text
    assert "Inside a transaction: " in text


def test_every_leaf_that_has_an_action_has_both() -> None:
    leaves = [cls for cls in vars(errors).values() if isinstance(cls, type)]
    halves = [
        cls.__name__
        for cls in leaves
        if ("Outside of a transaction: " in (cls.__doc__ or ""))
        != ("Inside a transaction: " in (cls.__doc__ or ""))
    ]
    assert halves == []


@pytest.mark.parametrize(
    "error_class", [each for each in ErrorClass if each is not ErrorClass.FATAL], ids=str
)
def test_the_contract_says_the_same_of_a_class(error_class: ErrorClass) -> None:
    contract = (ROOT / "protos/semel/common/v1/errors.proto").read_text()
    comment = re.search(rf"  // (.*)\n  ERROR_CLASS_{error_class.name} =", contract)
    assert comment is not None
    assert comment[1] == text_of(GENERAL[error_class]).partition(" Outside")[0]


@pytest.mark.parametrize(
    "error",
    [errors.StaleMemberEpochError, errors.UnknownMemberIdError, errors.FencedMemberEpochError],
)
def test_lost_membership_aborts_the_transaction_and_keeps_the_producer(
    error: type[SemelError],
) -> None:
    inside = text_of(error).partition("Inside a transaction: ")[2]
    assert inside.startswith(ABORTED)
    assert re.search(r"(The producer goes on|Producer and member go on)\.$", inside)


def test_no_page_but_the_generated_ones_says_what_to_do_about_a_stale_epoch() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from error_docs import action_of  # noqa: PLC0415 - tools is no package
    finally:
        sys.path.remove(str(ROOT / "tools"))
    action = action_of(errors.StaleMemberEpochError)
    assert action is not None
    page = (ROOT / "docs/reference/errors.md").read_text()
    assert f"| {action.outside} | {action.inside} |" in page
    for name in ("use/clients.md", "reference/protocol.md"):
        for line in (ROOT / "docs" / name).read_text().splitlines():
            assert "STALE_MEMBER_EPOCH" not in line or "errors.md" in line, f"{name}: {line}"
