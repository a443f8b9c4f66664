"""Each finding of the home page leads to the thing that it is about."""

import pytest

from aiosemel import TopicPartition
from semel_console.insight.doctor_checks import ID_CHURN, Finding
from semel_console.insight.examination import Examined
from semel_console.views.blocks import Grid, Missing
from semel_console.views.home_view import home_page

AWAY = Missing(what="The cluster", why="it does not answer")
AT = TopicPartition("orders", 3)


@pytest.mark.parametrize(
    ("finding", "href"),
    [
        (
            Finding(check="duel", what="w", do="d", transactional_id="app"),
            "/transaction?transactional_id=app",
        ),
        (
            Finding(check="stuck", what="w", do="d", partition=AT),
            "/partition?topic=orders&partition=3",
        ),
        (Finding(check=ID_CHURN, what="w", do="d"), "/transactions?state=any"),
        (Finding(check="disk", what="w", do="d"), "/cluster"),
    ],
)
def test_a_finding_leads_to_its_subject(finding: Finding, href: str) -> None:
    page = home_page(Examined(findings=(finding,), remarks=()), AWAY)
    (grid,) = (block for each in page.sections for block in each.blocks if isinstance(block, Grid))
    assert grid.rows[0].cells[-1].href == href
