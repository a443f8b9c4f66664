"""The actions of operators: each has a dry run, asks for a reason, and is the user's own call."""

from collections.abc import Mapping

from starlette.responses import RedirectResponse, Response

from aiosemel import PreparedTransactionId, TransactionDescription, TransactionState
from aiosemel.errors import InvalidTxnStateError
from semel_console.mode import Mode
from semel_console.views import places
from semel_console.views.action_view import BUTTONS, REASON_MAX, Action, WantedAction, action_page
from semel_console.web.forms import BadFormError, form_of
from semel_console.web.visit import BadAddressError, ForbiddenError, Visit

_ACTIONS = tuple(action.value for action in Action)


async def rehearse(visit: Visit) -> Response:
    """Show what an action would do. Raises ForbiddenError, BadAddressError."""
    return await _show(visit, _wanted(visit))


async def act(visit: Visit) -> Response:
    """Do it, and go to its transaction. Raises ForbiddenError, BadAddressError, SemelError."""
    wanted = _wanted(visit)
    try:
        fields = await form_of(visit.request)
    except BadFormError as error:
        raise BadAddressError(str(error)) from error
    if refused := _refused(wanted, fields):
        return await _show(visit, wanted, refused, status=400)
    await _do(visit, wanted, fields.get("reason", "").strip())
    place = places.transaction(wanted.transactional_id, wanted.producer_epoch)
    return RedirectResponse(place, status_code=303)


def _wanted(visit: Visit) -> WantedAction:
    if visit.options.mode is not Mode.OPERATOR:
        raise ForbiddenError(
            "this console is read-only: `semel console --mode operator` starts one with actions"
        )
    producer_id, epoch = visit.number("producer_id"), visit.number("epoch")
    if producer_id is None or epoch is None:
        raise BadAddressError("the address names no producer_id, or no epoch")
    return WantedAction(
        action=Action(visit.choice("do", _ACTIONS)),
        transactional_id=visit.needed("transactional_id"),
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def _refused(wanted: WantedAction, fields: Mapping[str, str]) -> str:
    """Return what a form lacks; empty: nothing."""
    if wanted.action.is_completion:
        if fields.get("typed") != wanted.transactional_id:
            return f"Type the transactional id, {wanted.transactional_id}, to confirm."
        if fields.get("sure") != "yes":
            return "Say that you know the decision."
    reason = fields.get("reason", "").strip()
    if not reason:
        return "Give a reason."
    return "" if len(reason) <= REASON_MAX else f"Give a reason of {REASON_MAX} characters at most."


async def _show(
    visit: Visit, wanted: WantedAction, refused: str = "", *, status: int = 200
) -> Response:
    participants = await visit.ask("The dry run", _run(visit, wanted, "", dry_run=True))
    page, can = action_page(wanted, participants, refused)
    return visit.show(
        page,
        status=status,
        template="action.html",
        can=can,
        wanted=wanted,
        button=BUTTONS[wanted.action],
    )


async def _do(visit: Visit, wanted: WantedAction, reason: str) -> None:
    await _run(visit, wanted, reason, dry_run=False)


async def _run(visit: Visit, wanted: WantedAction, reason: str, *, dry_run: bool) -> int:
    """Do something, or say what it would reach; returns how many partitions and groups."""
    operators, name = visit.admin.operators, wanted.transactional_id
    operator = visit.operator
    match wanted.action:
        case Action.ABORT:
            aborted = await operators.abort_transaction(
                name,
                wanted.producer_id,
                wanted.producer_epoch,
                operator=operator,
                reason=reason,
                dry_run=dry_run,
            )
            return aborted.participants
        case Action.FENCE:
            fenced = await operators.fence_producer(
                name, operator=operator, reason=reason, dry_run=dry_run
            )
            return fenced.participants
        case Action.COMMIT_PREPARED | Action.ABORT_PREPARED:
            return await _complete(visit, wanted, reason, dry_run=dry_run)


async def _complete(visit: Visit, wanted: WantedAction, reason: str, *, dry_run: bool) -> int:
    found = await _prepared(visit, wanted)
    if not dry_run:
        prepared = PreparedTransactionId(
            transactional_id=wanted.transactional_id,
            producer_id=wanted.producer_id,
            producer_epoch=wanted.producer_epoch,
        )
        commit = wanted.action is Action.COMMIT_PREPARED
        await visit.admin.complete_prepared(
            prepared, commit=commit, operator=visit.operator, reason=reason
        )
    return len(found.participants.partitions) + len(found.participants.group_ids)


async def _prepared(visit: Visit, wanted: WantedAction) -> TransactionDescription:
    described = await visit.admin.describe_transactions(wanted.transactional_id)
    for each in described.transactions:
        is_it = each.producer_epoch == wanted.producer_epoch
        if is_it and each.state is TransactionState.PREPARED:
            return each
    raise InvalidTxnStateError(
        f"transaction {wanted.producer_epoch} of {wanted.transactional_id} is not prepared"
    )
