"""The actions of operators: the dry run first, then a form with a reason. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from semel_console.insight.command_lines import command_line
from semel_console.insight.texts import counted
from semel_console.views import places
from semel_console.views.blocks import Cell, Missing, Notice, Page, Tone, link

PATH = "/action"
REASON_MAX = 500


class Action(StrEnum):
    """One thing that an operator may do."""

    ABORT = "abort"
    FENCE = "fence"
    COMMIT_PREPARED = "commit-prepared"
    ABORT_PREPARED = "abort-prepared"

    @property
    def is_completion(self) -> bool:
        """Whether it completes a prepared transaction in its owner's place."""
        return self in {Action.COMMIT_PREPARED, Action.ABORT_PREPARED}


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedAction:
    """An action on one transaction, or on one transactional id."""

    action: Action
    transactional_id: str
    producer_id: int
    producer_epoch: int

    @property
    def address(self) -> str:
        """The page that rehearses it."""
        return places.address(
            PATH,
            do=self.action.value,
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            epoch=self.producer_epoch,
        )

    @property
    def command(self) -> str:
        """The command line that does the same."""
        name, epoch = self.transactional_id, self.producer_epoch
        reason = ("--reason", "…")
        options: tuple[str | int, ...]
        match self.action:
            case Action.ABORT:
                options = ("--producer-id", self.producer_id, "--epoch", epoch, *reason)
                return command_line("transactions", "abort", names=(name,), options=options)
            case Action.FENCE:
                return command_line("transactions", "fence", names=(name,), options=reason)
            case Action.COMMIT_PREPARED | Action.ABORT_PREPARED:
                commits = self.action is Action.COMMIT_PREPARED
                options = ("--commit" if commits else "--abort", *reason)
                return command_line(
                    "transactions", "complete", names=(name, epoch), options=options
                )


TITLES = {
    Action.ABORT: "Abort this transaction?",
    Action.FENCE: "Fence this producer?",
    Action.COMMIT_PREPARED: "Commit this prepared transaction?",
    Action.ABORT_PREPARED: "Abort this prepared transaction?",
}
BUTTONS = {
    Action.ABORT: "Abort",
    Action.FENCE: "Fence",
    Action.COMMIT_PREPARED: "Commit",
    Action.ABORT_PREPARED: "Abort",
}
_EFFECTS = {
    Action.ABORT: "The coordinator aborts the transaction in place of its producer. The producer"
    " learns of it, and continues with its next transaction.",
    Action.FENCE: "The producer loses its transactional id, and its open transaction is aborted."
    " The next producer with the id takes it over.",
    Action.COMMIT_PREPARED: "The transaction commits without its owner. Its outside system must"
    " have committed.",
    Action.ABORT_PREPARED: "The transaction aborts without its owner. Its outside system must not"
    " have committed.",
}


def action_page(
    wanted: WantedAction, participants: int | Missing, refused: str = ""
) -> tuple[Page, bool]:
    """Return the page of a dry run, and whether the action can be done."""
    notices = [Notice(text=_EFFECTS[wanted.action], tone=Tone.WARN)]
    can = not isinstance(participants, Missing)
    if isinstance(participants, Missing):
        notices.append(Notice(text=participants.why, tone=Tone.BAD))
    else:
        count = counted(participants, "partition or group")
        if participants != 1:
            count = f"{participants} partitions and groups"
        notices.append(Notice(text=f"Dry run: the action is possible, and reaches {count}."))
    if refused:
        notices.append(Notice(text=refused, tone=Tone.BAD))
    page = Page(
        title=TITLES[wanted.action],
        command=wanted.command,
        notices=notices,
        sections=(),
        trail=(
            link("Transactions", "/transactions"),
            link(
                f"{wanted.transactional_id}, epoch {wanted.producer_epoch}",
                places.transaction(wanted.transactional_id, wanted.producer_epoch),
            ),
        ),
        is_live=False,
    )
    return page, can


def offers(
    transactional_id: str, producer_id: int, producer_epoch: int, actions: Sequence[Action]
) -> Sequence[Cell]:
    """Return links to the dry runs of actions."""
    return [
        link(
            f"{TITLES[action][:-1]}…",
            WantedAction(
                action=action,
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
            ).address,
        )
        for action in actions
    ]
