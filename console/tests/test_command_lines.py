"""A line that a page shows is read by a shell as it is meant, whatever names are in it."""

import ast
import shlex

import pytest

from aiosemel import HoldingTransaction, KnownOutcome, ReaderCause, ReaderStanding, TopicPartition
from semel_console.insight.command_lines import command_line
from semel_console.insight.reader_causes import verdict
from semel_console.views.blocks import Grid
from semel_console.views.transaction_list_view import EVERY, OPEN, Wanted, list_page
from semel_console.views.why_view import why_page


@pytest.mark.parametrize("name", ["orders-1", "it's", "$HOME `id`", "two words", "", "<b>;&|"])
def test_a_name_is_one_word_and_options_stand_behind_it(name: str) -> None:
    line = command_line("transactions", "complete", names=(name, 4), options=("--commit",))
    assert shlex.split(line) == ["semel", "transactions", "complete", name, "4", "--commit"]


@pytest.mark.parametrize("name", ["it's\u202e \\ \x1b[31mé", "a\nb\u00a0c", "\U000e0041\x7f\x041"])
def test_characters_that_a_terminal_obeys_are_escapes_that_a_shell_reads(name: str) -> None:
    line = command_line("transactions", "describe", names=(name,))
    assert line.isprintable()
    quoted = line.removeprefix("semel transactions describe $")
    assert ast.literal_eval(quoted) == name  # These escapes mean the same to Python and to bash.


@pytest.mark.parametrize("name", ["-", "-h", "--help", "--it's"])
def test_a_name_that_begins_with_a_dash_is_no_option(name: str) -> None:
    line = command_line("transactions", "complete", names=(name, 4), options=("--commit",))
    assert shlex.split(line) == ["semel", "transactions", "complete", "--commit", "--", name, "4"]


def test_the_remedy_of_a_prepared_transaction_says_which_decision_it_would_carry_out() -> None:
    holder = HoldingTransaction(
        transactional_id="--two 'phase'",
        producer_id=7,
        producer_epoch=3,
        start_time_ms=1,
        age_ms=1,
        outcome=KnownOutcome.PREPARED,
        time_left_ms=None,
        client="",
    )
    standing = ReaderStanding(
        group_id="g",
        partition=TopicPartition("t", 0),
        cause=ReaderCause.OPEN_TRANSACTION,
        holder=holder,
    )
    line = verdict(standing).do.partition(": ")[2]
    assert shlex.split(line) == [
        *("semel", "transactions", "complete", "--commit", "--dry-run"),
        *("--", "--two 'phase'", "3"),
    ]


@pytest.mark.parametrize(("state", "is_by_age"), [(OPEN, True), ("Empty", False), (EVERY, False)])
def test_the_command_of_a_list_has_the_order_of_the_list(state: str, *, is_by_age: bool) -> None:
    page = list_page([], Wanted(state=state, text="", after=""), now_ms=2)
    assert ("--oldest-first" in shlex.split(page.command)) is is_by_age


@pytest.mark.parametrize("cause", [ReaderCause.NO_TOPIC, ReaderCause.NO_PARTITION])
def test_a_partition_that_is_not_there_has_no_link(cause: ReaderCause) -> None:
    at = TopicPartition("nothing", 0)
    standing = ReaderStanding(group_id="g", partition=at, cause=cause)
    (section,) = why_page("g", at.topic, {at: standing}).sections
    (grid,) = section.blocks
    assert isinstance(grid, Grid)
    assert [each.href for each in grid.rows[0].cells] == [""] * 4


def test_no_line_makes_a_topic_before_its_name_was_looked_for() -> None:
    at = TopicPartition("nothing", 0)
    do = verdict(ReaderStanding(group_id="g", partition=at, cause=ReaderCause.NO_TOPIC)).do
    assert do.split("`")[1::2] == ["semel topics list", "semel topics create nothing"]
