"""No page is larger than 64 KiB, and a page that leaves out lines says so."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from aiosemel import PartitionDescription, SemelClient, TopicDescription
from semel_console.insight.holders import Holder
from semel_console.insight.offset_views import Watermarks
from semel_console.options import ConsoleOptions
from semel_console.views.blocks import (
    Bar,
    Block,
    Cell,
    Chart,
    Facts,
    Grid,
    Page,
    Row,
    Section,
    Tone,
)
from semel_console.views.paging import LIST_BYTES_MAX, PAGE_BYTES_MAX, TEXT_MAX, fitting
from semel_console.views.topic_view import PARTITIONS_MAX, topic_page
from semel_console.web.instances import Instances
from semel_console.web.lag_samples import LagSamples
from semel_console.web.visit import Visit

LONGEST_NAME = "t" * 249
TEXTS = st.sampled_from(["", "7", "orders", "&" * 300, "x" * 5_000])
CELLS = st.builds(
    Cell,
    text=TEXTS,
    href=st.sampled_from(["", "/partition?topic=orders&partition=7", "/group?id=" + "g" * 300]),
    tone=st.sampled_from(Tone),
    is_badge=st.booleans(),
    is_code=st.booleans(),
    share=st.none() | st.floats(0, 1),
)
ROWS = st.builds(Row, cells=st.lists(CELLS, min_size=1, max_size=8), tone=st.sampled_from(Tone))
GRIDS = st.builds(
    lambda row, count: Grid(headings=("A", "B"), rows=[row] * count), ROWS, st.integers(0, 200)
)
CHARTS = st.builds(
    lambda bar, count: Chart(caption="Bars", bars=[bar] * count),
    st.builds(Bar, label=TEXTS.filter(lambda text: len(text) < 400), value=st.integers(0, 9),
              text=st.just("9 records"), href=st.just("/history")),
    st.integers(0, 200),
)  # fmt: skip
FACTS = st.builds(
    lambda cells: Facts(pairs=[("Fact", cell) for cell in cells]), st.lists(CELLS, max_size=3)
)
PAGES = st.lists(st.lists(GRIDS | CHARTS | FACTS, max_size=3), max_size=2)


def html_of(page: Page) -> bytes:
    """Return what a browser gets."""
    address = {
        "type": "http",
        "scheme": "http",
        "server": ("localhost", 9080),
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "headers": [],
    }
    visit = Visit(
        request=Request(address),
        client=SemelClient("127.0.0.1:9"),
        options=ConsoleOptions(bootstrap="127.0.0.1:9"),
        instances=Instances(),
        lag_samples=LagSamples(),
    )
    return bytes(visit.show(page).body)


@settings(max_examples=30)
@given(PAGES)
def test_no_page_is_too_large(blocks: list[list[Block]]) -> None:
    sections = [Section(title="", blocks=each) for each in blocks]
    html = html_of(Page(title="Page", command="semel doctor", sections=sections))
    assert len(html) <= PAGE_BYTES_MAX


def test_a_table_that_is_cut_says_so_and_leaves_room_for_the_next() -> None:
    long = Grid(headings=("A",), rows=[Row(cells=[Cell(text=f"line {n}")]) for n in range(9_000)])
    short = Grid(headings=("B",), rows=[Row(cells=[Cell(text="the other table")])])
    sections = [Section(title="Long", blocks=(long,)), Section(title="Short", blocks=(short,))]
    html = html_of(Page(title="Page", command="", sections=sections)).decode()
    assert "of 9000 lines." in html
    assert html.count("<td>") > 500
    assert "the other table" in html


def test_a_long_text_says_how_long_it_is() -> None:
    facts = Facts(pairs=[("Fact", Cell(text="x" * 90_000))])
    page = Page(title="Page", command="", sections=[Section(title="", blocks=[facts])])
    html = html_of(page).decode()
    assert f"{'x' * TEXT_MAX} … (90,000 characters)" in html


@settings(max_examples=30)
@given(st.lists(ROWS, min_size=1, max_size=60))
def test_a_list_that_fits_is_not_cut_again(rows: list[Row]) -> None:
    shown = fitting(rows, 50)
    page = Page(
        title="List",
        command="",
        sections=[Section(title="", blocks=[Grid(headings=("A",), rows=shown)])],
    )
    html = html_of(page)
    assert html.count(b"<tr") == 1 + len(shown)
    assert len(shown) <= 1 or len(html) < LIST_BYTES_MAX + (10 << 10)


@pytest.mark.parametrize("name", ["orders", LONGEST_NAME])
def test_the_next_page_of_a_topic_begins_where_this_one_ends(name: str) -> None:
    partitions = [
        PartitionDescription(partition=number, leader_id=0, leader_epoch=0)
        for number in range(1_000)
    ]
    topic = TopicDescription(name=name, topic_id="id", partitions=tuple(partitions))
    marks = {n: Watermarks(start=0, stable_end=5, end=10**18) for n in range(PARTITIONS_MAX)}
    holder = Holder(
        transactional_id="x" * 200,
        producer_id=1,
        producer_epoch=2,
        first_offset=5,
        age_ms=10,
        time_left_ms=5,
        is_prepared=False,
        client="User:" + "x" * 200,
    )
    page = topic_page(
        topic, partitions[:PARTITIONS_MAX], marks, dict.fromkeys(range(20), holder), ()
    )
    html = html_of(page)
    assert len(html) <= PAGE_BYTES_MAX
    assert page.more is not None
    assert b"(the 12 largest of 20)" in html
    last = html.count(b">records<") - 1
    assert 10 < last < PARTITIONS_MAX
    assert page.more.href.endswith(f"after={last}")
