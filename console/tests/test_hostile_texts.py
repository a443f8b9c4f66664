"""Texts of strangers are shown, and never run, wherever a page has a place for them."""

import ast
from dataclasses import replace

import pytest
from html_check import read_page
from hypothesis import given
from hypothesis import strategies as st

from aiosemel import TransactionListing, TransactionState
from semel_console.insight.command_lines import command_line
from semel_console.insight.texts import visible
from semel_console.mode import Mode
from semel_console.views import places
from semel_console.views.blocks import (
    Bar,
    Cell,
    Chart,
    Column,
    Columns,
    Facts,
    Field,
    Form,
    Grid,
    Missing,
    Notice,
    Page,
    Row,
    Section,
    Tone,
    code,
)
from semel_console.views.transaction_list_view import OPEN, Wanted, list_page
from semel_console.web.rendering import STATIC, Frame, render

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</td></table><iframe src=//attacker.example.net>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "\u202eevil\u0000\u001b[31m",
    "</textarea><svg onload=alert(1)>",
    "&lt;script&gt;",
)
FRAME = Frame(
    path="/", address="/?a=b", cluster="h:1", mode=Mode.READ_ONLY, can_sign_out=False, query=""
)


def page_of(text: str) -> Page:
    """Return a page that has a text in every place."""
    cells = (
        Cell(text=text, href=places.transaction(text)),
        Cell(text=text, is_badge=True, tone=Tone.BAD),
        code(text),
    )
    return Page(
        title=text,
        command=command_line("transactions", "describe", names=(text,)),
        form=Form(
            action="/transactions",
            kept=(("id", text),),
            fields=(
                Field(name="id", label=text, value=text),
                Field(name="state", label="State", value=text, choices=((text, text),)),
            ),
        ),
        notices=(Notice(text=text, links=cells),),
        trail=cells,
        more=cells[0],
        sections=(
            Section(
                title=text,
                note=text,
                blocks=(
                    Grid(headings=(text,), rows=[Row(cells=cells)]),
                    Grid(headings=(text,), rows=[], empty=text),
                    Facts(pairs=((text, cells[0]),)),
                    Missing(what=text, why=text),
                    Columns(
                        caption=text,
                        columns=[Column(label=text, parts=((1, Tone.BAD),), text=text)],
                    ),
                    Chart(
                        caption=text,
                        bars=[Bar(label=text, value=1, text=text, href=places.group(text))],
                    ),
                ),
            ),
        ),
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_known_tricks_are_shown_as_they_are(text: str) -> None:
    frame = replace(FRAME, address=places.group(text), cluster=text, query=text)
    read = read_page(render("page.html", frame, page=page_of(text)))
    assert read.offences == []
    assert read.text.count(visible(text)) >= 12


def test_characters_that_steer_a_browser_are_seen_and_do_nothing() -> None:
    text = "app\u202egnp.exe\u2066\u200b\u2028\x07\x1b[31m\0\xad"
    frame = replace(FRAME, cluster=text)
    html = render("page.html", frame, page=page_of(text))
    shown = r"app\u202egnp.exe\u2066\u200b\u2028\x07\x1b[31m\x00\xad"
    assert html.count(shown) >= 12
    # Fields give back what they were given.
    assert html.count(f'value="{text}"') == 3
    assert html.count(text) == 3


def test_lines_and_tabs_of_a_value_stay() -> None:
    page = Page(
        title="t", command="", sections=(Section(title="", blocks=(Notice(text="{\n\t1\r\n}"),)),)
    )
    assert "{\n\t1\\r\n}" in render("page.html", FRAME, page=page)


@given(st.text(alphabet=st.sampled_from("<>\"'&/={}%#`-! \n\0scriptonlad:"), max_size=60))
def test_no_text_becomes_a_part_of_a_page(text: str) -> None:
    frame = replace(FRAME, address=places.group(text), cluster=text, query=text)
    assert read_page(render("page.html", frame, page=page_of(text))).offences == []


def test_numbers_of_64_bits_keep_every_digit() -> None:
    largest = (1 << 63) - 1
    entry = TransactionListing(
        transactional_id="app",
        producer_id=largest,
        producer_epoch=largest - 1,
        state=TransactionState.ONGOING,
        start_time_ms=1,
        incomplete_transactions=0,
        transaction_timeout_ms=60_000,
        last_update_time_ms=1,
        fenced_transactions=0,
    )
    page = list_page([entry], Wanted(state=OPEN, text="", after=""), now_ms=2)
    read = read_page(render("page.html", FRAME, page=page))
    assert "9223372036854775807" in read.text
    assert "/transaction?transactional_id=app&epoch=9223372036854775806" in read.links


def test_no_field_has_the_name_of_a_property_of_its_form() -> None:
    """Else ``form.id`` would be a field, and scripts would take it for the id of the form."""
    names = set()
    for path in sorted((STATIC.parent / "views").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for call in calls:
            if ast.unparse(call.func) == "Field":
                names |= {
                    ast.literal_eval(each.value) for each in call.keywords if each.arg == "name"
                }
    assert "transactional_id" in names
    assert names.isdisjoint(
        {"id", "name", "contains", "action", "method", "target", "children", "title", "remove"}
    )
