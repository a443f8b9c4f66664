"""What operators asked services for: by whom, from where, and why. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from aiosemel import AuditEntry, AuditLog
from semel_console.insight.command_lines import command_line
from semel_console.insight.texts import time_text
from semel_console.views import places
from semel_console.views.blocks import (
    NOTHING,
    Cell,
    Field,
    Form,
    Grid,
    Missing,
    Page,
    Row,
    Section,
    Tone,
    badge,
    cell,
    code,
    link,
)
from semel_console.views.paging import fitting

ROWS_MAX = 100
ANY = "any"
ACTIONS = (
    "AbortTransaction",
    "FenceProducer",
    "CompletePreparedTxn",
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "IncrementalAlterConfigs",
    "CreateAcls",
    "DeleteAcls",
    "AlterClientQuotas",
    "AlterPartitionReassignments",
    "RebalancePartitions",
    "DecommissionInstance",
    "CommitOffsets",
    "DeleteOffsets",
    "DeleteGroups",
    "DeleteRecords",
    "Fetch",
)
"""The RPCs that services write down."""
PERIODS: Mapping[str, int | None] = {ANY: None, "hour": 3_600, "day": 86_400, "week": 604_800}
"""How far the list goes back, in seconds."""
_DONE = "DONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAudit:
    """What the address asks for."""

    action: str = ANY
    """One of ``ACTIONS``, or ``ANY``."""
    principal: str = ""
    address: str = ""
    period: str = ANY
    """One of ``PERIODS``."""
    behind: str = ""
    """Where the page before has ended; empty: this is the first page."""


def audit_page(found: AuditLog | Missing, wanted: WantedAudit) -> Page:
    """Return one page of the list; each name in it leads to the entries that have the same."""
    if isinstance(found, Missing):
        sections = (Section(title="", blocks=(found,)),)
        more = None
    else:
        rows = fitting([_row(each, wanted) for each in found.entries], ROWS_MAX)
        sections = (Section(title="", note=_NOTE, blocks=(_grid(rows),)),)
        is_cut = len(rows) < len(found.entries)
        behind = found.entries[len(rows) - 1].position if is_cut else found.behind
        more = behind and link("Earlier ones", _address(replace(wanted, behind=behind)))
    return Page(
        title="Audit",
        command=_command(wanted),
        form=_form(wanted),
        sections=sections,
        more=more or None,
    )


_NOTE = (
    "If an operator's request changes transactions, topics, groups, records, rules, quotas or"
    " leaders, the service writes the request down before it carries it out. Services also write"
    " down each look at records in a console (Fetch). Dry runs are left out."
)


def _grid(rows: Sequence[Row]) -> Grid:
    return Grid(
        headings=("Time", "Action", "Who", "From", "In their words", "Reason", "End", "Request"),
        rows=rows,
        empty="No request matches.",
    )


def _row(each: AuditEntry, wanted: WantedAudit) -> Row:
    first = replace(wanted, behind="")
    return Row(
        cells=(
            cell(time_text(each.time_ms)),
            link(each.action, _address(replace(first, action=each.action)))
            if each.action in ACTIONS
            else cell(each.action),
            link(each.principal, _address(replace(first, principal=each.principal))),
            link(each.address, _address(replace(first, address=each.address)))
            if each.address
            else NOTHING,
            cell(each.operator),
            cell(each.reason),
            _end(each.end),
            code(each.what),
        )
    )


def _end(end: str) -> Cell:
    """Return how a request ended."""
    if not end:
        return badge("not known", Tone.WARN)
    return badge("done", Tone.GOOD) if end == _DONE else badge(end, Tone.BAD)


def _address(wanted: WantedAudit) -> str:
    return places.address(
        "/audit",
        call=None if wanted.action == ANY else wanted.action,
        principal=wanted.principal or None,
        address=wanted.address or None,
        period=None if wanted.period == ANY else wanted.period,
        behind=wanted.behind or None,
    )


def _form(wanted: WantedAudit) -> Form:
    return Form(
        action="/audit",
        fields=(
            Field(
                name="call",
                label="Action",
                value=wanted.action,
                choices=[(each, each) for each in (ANY, *ACTIONS)],
            ),
            Field(name="principal", label="Principal, such as User:ada", value=wanted.principal),
            Field(name="address", label="Address, such as 10.0.0.7", value=wanted.address),
            Field(
                name="period",
                label="In the last",
                value=wanted.period,
                choices=[(each, each) for each in PERIODS],
            ),
        ),
    )


def _command(wanted: WantedAudit) -> str:
    seconds = PERIODS[wanted.period]
    given = (
        ("--action", "" if wanted.action == ANY else wanted.action),
        ("--principal", wanted.principal),
        ("--address", wanted.address),
        ("--within", "" if seconds is None else str(seconds)),
        ("--behind", wanted.behind),
    )
    words = [word for option, value in given if value for word in (option, value)]
    return command_line("audit", *words)
