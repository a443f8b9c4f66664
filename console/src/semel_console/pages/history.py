"""The transactions that have ended."""

from starlette.responses import Response

from aiosemel import AbortReason, HistoryFilter, KnownOutcome
from semel_console.views.history_view import (
    ANY,
    COUNTED_MAX,
    OUTCOMES,
    REASONS,
    ROWS_MAX,
    WantedHistory,
    history_page,
)
from semel_console.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Show the history of a day, newest first."""
    wanted = WantedHistory(
        outcome=visit.choice("outcome", OUTCOMES),
        reason=visit.choice("reason", REASONS),
        prefix=visit.text("transactional_id"),
        topic=visit.text("topic"),
        group=visit.text("group"),
        behind=visit.text("behind"),
    )
    is_first = not wanted.behind
    history, missing = await visit.ask_everyone(
        "The history",
        visit.admin.transaction_history(
            _filter(wanted),
            behind=wanted.behind or None,
            limit=COUNTED_MAX if is_first else ROWS_MAX,
        ),
    )
    return visit.show(history_page(history, wanted, visit.now_ms).lacking(missing))


def _filter(wanted: WantedHistory) -> HistoryFilter:
    return HistoryFilter(
        outcome=None if wanted.outcome == ANY else KnownOutcome(wanted.outcome),
        abort_reasons=() if wanted.reason == ANY else (AbortReason(wanted.reason),),
        transactional_id_prefix=wanted.prefix,
        topic=wanted.topic or None,
        group_id=wanted.group or None,
    )
