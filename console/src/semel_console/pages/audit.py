"""The requests by which operators changed something."""

from starlette.responses import Response

from semel_console.views.audit_view import ACTIONS, ANY, PERIODS, ROWS_MAX, WantedAudit, audit_page
from semel_console.web.visit import Visit


async def show(visit: Visit) -> Response:
    """Show what operators asked coordinators for, the last request first."""
    wanted = WantedAudit(
        action=visit.choice("call", (ANY, *ACTIONS)),
        principal=visit.text("principal").strip(),
        address=visit.text("address").strip(),
        period=visit.choice("period", tuple(PERIODS)),
        behind=visit.text("behind"),
    )
    seconds = PERIODS[wanted.period]
    found, missing = await visit.ask_everyone(
        "The audit",
        visit.admin.operators.list_audit(
            actions=() if wanted.action == ANY else (wanted.action,),
            principal=wanted.principal or None,
            address=wanted.address or None,
            from_time_ms=None if seconds is None else visit.now_ms - seconds * 1_000,
            behind=wanted.behind or None,
            limit=ROWS_MAX,
        ),
    )
    return visit.show(audit_page(found, wanted).lacking(missing))
