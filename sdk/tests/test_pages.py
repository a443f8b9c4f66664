"""The SDK follows pages to the end, and no server keeps it going round in a list."""

import pytest

from aiosemel._cluster.pages import pages
from aiosemel.errors import UnknownServerError
from semel.group.v1.group_pb2 import ListGroupsResponse


async def test_every_page_is_asked_for_with_the_token_of_the_one_before() -> None:
    asked: list[str] = []

    async def ask(token: str) -> ListGroupsResponse:
        asked.append(token)
        return ListGroupsResponse(next_page_token={"": "a", "a": "b"}.get(token, ""))

    assert len([page async for page in pages(ask)]) == 3
    assert asked == ["", "a", "b"]


async def test_a_list_that_leads_back_is_an_error() -> None:
    async def ask(token: str) -> ListGroupsResponse:
        return ListGroupsResponse(next_page_token={"": "a", "a": "b"}.get(token, "a"))

    with pytest.raises(UnknownServerError, match="answers the page 'a' of a list twice"):
        async for _ in pages(ask):
            pass


async def test_a_list_that_outgrows_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiosemel._cluster.pages.LIST_MAX_BYTES", 100)

    async def ask(token: str) -> ListGroupsResponse:
        return ListGroupsResponse(next_page_token=f"{token}x")

    with pytest.raises(UnknownServerError, match="a list of over 100 bytes"):
        async for _ in pages(ask):
            pass
