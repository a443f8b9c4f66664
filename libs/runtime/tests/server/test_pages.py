"""Pages end where a message or a limit does, and their names come in order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semel.group.v1.group_pb2 import GroupListing
from semel_common.errors import InvalidRequestError
from semel_runtime.server import pages
from semel_runtime.server.pages import BYTES_MAX, ITEMS_MAX, Page, names_after
from semel_runtime.testing.virtual_time import in_virtual_time


def test_a_page_ends_at_its_limit() -> None:
    page = Page(2)
    assert [page.takes(GroupListing(group_id="g")) for _ in range(3)] == [True, True, False]


def test_without_a_limit_a_page_ends_where_a_message_of_grpc_does() -> None:
    page = Page(0)
    entry = GroupListing(group_id="g" * 100_000)
    taken = 0
    while page.takes(entry):
        taken += 1
    assert BYTES_MAX - entry.ByteSize() < taken * entry.ByteSize() <= BYTES_MAX < 4 << 20
    small = Page(0)
    assert sum(small.takes(GroupListing()) for _ in range(ITEMS_MAX + 1)) == ITEMS_MAX


def test_what_stands_together_is_on_one_page_and_a_page_has_something() -> None:
    page = Page(2)
    assert page.takes()
    assert page.takes(*[GroupListing()] * 3)
    assert not page.takes(GroupListing())
    large = Page(0)
    assert large.takes(GroupListing(group_id="g" * (4 << 20)))
    assert not large.takes(GroupListing(group_id="g"))


@pytest.mark.parametrize("limit", [-1, ITEMS_MAX + 1])
def test_a_limit_has_bounds(limit: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"limit is {limit}"):
        Page(limit)


@given(st.lists(st.text(max_size=3), unique=True), st.text(max_size=3), st.integers(1, 5))
@in_virtual_time
async def test_names_behind_a_token_come_in_order(names: list[str], token: str, turn: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "_SORTED_PER_TURN", turn)
        found = list(await names_after(names, token))
    assert found == sorted(name for name in names if name > token)
