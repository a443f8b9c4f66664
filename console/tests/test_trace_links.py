"""The link from a transaction to its trace, and the text where there is no link."""

from dataclasses import replace

import pytest
from ended_transactions import ASKED, DESCRIBED, ENDED

from aiosemel import (
    Participants,
    TransactionDescription,
    TransactionHistory,
    TransactionState,
)
from semel_console.views.blocks import Cell, Facts
from semel_console.views.transaction_view import transaction_page

TRACE = "0af7651916cd43dd8448eb211c80319c"
RECORDED = f"00-{TRACE}-b7ad6b7169203331-01"
NO_PARTICIPANTS = Participants(partitions=(), group_ids=())
JAEGER = "https://traces.example/jaeger/"


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    ("jaeger", "href"),
    [
        ("http://127.0.0.1:16686", f"http://127.0.0.1:16686/trace/{TRACE}"),
        (JAEGER, f"https://traces.example/jaeger/trace/{TRACE}"),
        ("", ""),
    ],
)
def test_a_transaction_leads_to_its_trace_if_the_place_of_traces_is_known(
    jaeger: str, href: str, *, is_open: bool
) -> None:
    shown = trace_of(RECORDED, jaeger, is_open=is_open)
    assert (shown.text, shown.href) == (TRACE, href)


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize("given", ["", "00-../../search-b7ad6b7169203331-01", f"00-{TRACE}-1-01"])
def test_a_text_that_names_no_trace_is_no_link(given: str, *, is_open: bool) -> None:
    shown = trace_of(given, JAEGER, is_open=is_open)
    assert (shown.text, shown.href) == ("-", "")


def trace_of(traceparent: str, jaeger: str, *, is_open: bool) -> Cell:
    opened = TransactionDescription(
        producer_epoch=3,
        state=TransactionState.ONGOING,
        start_time_ms=5,
        participants=NO_PARTICIPANTS,
        missing_markers=NO_PARTICIPANTS,
        abort_reason=None,
        traceparent=traceparent,
    )
    ended = replace(ENDED, traceparent=traceparent)
    asked = replace(
        ASKED,
        described=replace(DESCRIBED, transactions=(opened,) if is_open else ()),
        history=TransactionHistory(transactions=() if is_open else (ended,), behind=None),
    )
    page = transaction_page(asked, 9, jaeger, acts=False)
    (found,) = (
        value
        for section in page.sections
        for block in section.blocks
        if isinstance(block, Facts)
        for name, value in block.pairs
        if name == "Trace"
    )
    return found
