"""The list of transactions."""

from starlette.responses import Response

from semel_console.views.places import containing
from semel_console.views.transaction_list_view import (
    CHOICES,
    PAGE_ROWS,
    Wanted,
    list_page,
    order_of,
    states_of,
)
from semel_console.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Show the transactional ids in some state, and with some text in their names."""
    wanted = Wanted(
        state=visit.choice("state", CHOICES),
        text=visit.text("transactional_id"),
        after=visit.text("after"),
    )
    listed, missing = await visit.ask_everyone(
        "The list",
        visit.admin.list_transactions(
            states=states_of(wanted.state),
            transactional_id_pattern=containing(wanted.text),
            order=order_of(wanted.state),
            limit=PAGE_ROWS + 1,
            behind=wanted.after or None,
        ),
    )
    return visit.show(list_page(listed, wanted, visit.now_ms).lacking(missing))
