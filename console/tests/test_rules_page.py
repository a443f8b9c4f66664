"""A page of more rules or quotas than it has room for says so."""

from collections.abc import Sequence
from dataclasses import replace

from aiosemel import AclBinding, AclOperation, ClientQuota, ResourceType
from semel_console.views.blocks import Grid, Missing
from semel_console.views.rules_view import QUOTAS_MAX, RULES_MAX, AskedRights, rules_page

ALL = AskedRights(principal="", operation="", topic="", group="", transactional_id="")


def rules(count: int) -> Sequence[AclBinding]:
    return [
        AclBinding(
            resource_type=ResourceType.TOPIC,
            resource_name="orders",
            principal=f"User:app-{number}",
            operation=AclOperation.READ,
        )
        for number in range(count)
    ]


def quotas(count: int) -> Sequence[ClientQuota]:
    return [
        ClientQuota(user=f"app-{number}", limits={"request_rate": 1}) for number in range(count)
    ]


def test_a_page_with_room_for_all_has_no_note() -> None:
    page = rules_page(rules(40), quotas(100), ALL)
    assert [section.note for section in page.sections] == ["", ""]


def test_a_page_of_too_many_lines_says_how_many_it_shows_and_which_command_lists_all() -> None:
    page = rules_page(rules(RULES_MAX + 1), quotas(QUOTAS_MAX + 5), ALL)
    grids = [block for section in page.sections for block in section.blocks]
    shown = [len(grid.rows) for grid in grids if isinstance(grid, Grid)]
    assert all(40 < count <= RULES_MAX for count in shown)
    assert [section.note for section in page.sections] == [
        f"The page shows the first {shown[0]} of {RULES_MAX + 1}; semel acls list lists all.",
        f"The page shows the first {shown[1]} of {QUOTAS_MAX + 5}; semel quotas list lists all.",
    ]


def test_only_the_rules_of_the_asked_principal_count() -> None:
    page = rules_page(rules(RULES_MAX + 1), quotas(1), replace(ALL, principal="User:app-7"))
    assert page.sections[0].note == ""


def test_lists_that_are_missing_have_no_note() -> None:
    missing = Missing(what="The rules", why="no answer")
    page = rules_page(missing, missing, ALL)
    assert [section.note for section in page.sections] == ["", ""]
