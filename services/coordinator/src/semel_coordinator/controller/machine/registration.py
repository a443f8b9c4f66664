"""Deciding whether an instance may register, and what becomes of others at its addresses.

Two things are watched over:

* Journals. The controller keeps a mark of each instance's journal: its last claim, and how far it
  went under that claim. A journal that lacks any of that comes from a volume that was restored from
  an old backup, or from a copy of a volume: it is refused before it can do harm. `claims` has the
  rule; an instance of a release that keeps no claims must at least have a higher claim epoch.
* Addresses. Of two instances of one role at one address, either the older was moved away and its
  address given to the other, or the configuration is wrong. While the one that is known there
  lives, the other has to wait; else it loses the address, and is nowhere until it registers again.
  Instances of different roles may share an address: a proxy tells them apart by the service.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from semel_common.errors import (
    CoordinatorNotAvailableError,
    InconsistentClusterIdError,
    InvalidRequestError,
    StaleClaimEpochError,
)
from semel_coordinator.controller.machine.records import InstanceRecord
from semel_coordinator.controller.machine.state import (
    ControllerState,
    InstanceKey,
    addresses_of,
    key_of,
)
from semel_runtime.claims import ClaimHistory, JournalMark, missing
from semel_runtime.cluster.metadata_image import Instance

INSTANCE_ID_MAX = 9_999


class Registration(Struct, frozen=True, kw_only=True):
    """What an instance says of itself."""

    instance: Instance
    cluster_id: str
    """Empty: it belongs to no cluster yet."""
    claim_epoch: int
    claim_token: str
    journal_end_offset: int = 0
    """Where its journal ends, durably."""
    history: ClaimHistory | None = None
    """The claims of its journal; None: this process has shown them before, or keeps none."""
    controller: JournalMark | None = None
    """What it knows of the controller's journal; None: nothing."""

    @property
    def key(self) -> InstanceKey:
        """Who registers."""
        return key_of(self.instance)


def registered(
    state: ControllerState, registration: Registration, is_live: Callable[[InstanceKey], bool]
) -> list[InstanceRecord]:
    """Return the records of a registration: none if nothing is new.

    Raises InconsistentClusterIdError, InvalidRequestError (there is no such instance),
    StaleClaimEpochError, and CoordinatorNotAvailableError while another instance lives at the same
    address.
    """
    cluster = state.made_cluster()
    _check_cluster_id(registration, cluster.cluster_id)
    _check_range(registration.key)
    _check_claim(registration, state.instances.get(registration.key))
    moved = [_without(state, key, registration) for key in _others(state, registration, is_live)]
    news = [replace(each, version=state.version + i) for i, each in enumerate(moved, start=1)]
    own = _own_record(state, registration, version=state.version + len(news))
    return news if own is None else [*news, own]


def _check_cluster_id(registration: Registration, cluster_id: str) -> None:
    if registration.cluster_id not in {"", cluster_id}:
        raise InconsistentClusterIdError(
            f"{registration.key} belongs to cluster {registration.cluster_id}, not to {cluster_id}:"
            " give it a journal of its own (data_dir, journal_url), or the address of its own"
            " controller",
            cluster_id=cluster_id,
        )


def _check_range(key: InstanceKey) -> None:
    """Coordinators beyond the layout may be added: partitions move to them, as to new brokers."""
    if not 0 <= key.instance_id <= INSTANCE_ID_MAX:
        raise InvalidRequestError(
            f"there can be no {key}: the number is 0 to {INSTANCE_ID_MAX}",
            field="instance_id",
        )


def _check_claim(registration: Registration, known: InstanceRecord | None) -> None:
    """Raise unless the journal has all that is known of it, or the process has shown that before.

    A process that is known already needs no history: no other one writes to its journal.
    """
    if known is None or _is_known(registration, known):
        return
    if registration.claim_epoch > known.claim_epoch:
        _check_history(registration, known)
    elif registration.claim_epoch < known.claim_epoch:
        raise StaleClaimEpochError(
            f"{registration.key} comes with claim epoch {registration.claim_epoch}, but has been"
            f" here with {known.claim_epoch}: its volume was restored from an old backup, or is a"
            " copy; stop it and see `semel recover`",
            claim_epoch=known.claim_epoch,
        )
    else:
        raise StaleClaimEpochError(
            f"another process has registered as {registration.key} with the same claim epoch"
            f" {known.claim_epoch}: one of the two works on a copy of the volume; stop it and see"
            " `semel recover`",
            claim_epoch=known.claim_epoch,
        )


def _is_known(registration: Registration, known: InstanceRecord) -> bool:
    return (registration.claim_epoch, registration.claim_token) == (
        known.claim_epoch,
        known.claim_token,
    )


def _check_history(registration: Registration, known: InstanceRecord) -> None:
    if registration.history is None:
        return
    lacking = missing(registration.history, known.mark, end_offset=registration.journal_end_offset)
    if lacking:
        raise StaleClaimEpochError(
            f"{registration.key} comes with a journal that lacks records or claims that it"
            f" had before: {lacking}. Its volume was restored from an old backup, or is a copy;"
            " stop it and see `semel recover`",
            claim_epoch=known.claim_epoch,
        )


def _others(
    state: ControllerState, registration: Registration, is_live: Callable[[InstanceKey], bool]
) -> list[InstanceKey]:
    """Return the instances that were at these addresses and are so no longer."""
    found: dict[InstanceKey, None] = {}
    for address in addresses_of(registration.instance):
        holder = state.holders.get(address, registration.key)
        if holder == registration.key:
            continue
        if is_live(holder):
            raise CoordinatorNotAvailableError(
                f"{registration.key} says that it is at {address.host_and_port}, where {holder}"
                " registered a moment ago: every instance needs an address of its own",
                address=address.host_and_port,
            )
        found[holder] = None
    return list(found)


def _without(
    state: ControllerState, key: InstanceKey, registration: Registration
) -> InstanceRecord:
    """Return an instance's record without the addresses that are another's now."""
    record = state.instances[key]
    taken = {address.host_and_port for address in addresses_of(registration.instance)}
    left = tuple(
        listener for listener in record.instance.listeners if listener.address not in taken
    )
    return replace(record, instance=replace(record.instance, listeners=left))


def _own_record(
    state: ControllerState, registration: Registration, *, version: int
) -> InstanceRecord | None:
    known = state.instances.get(registration.key)
    # An instance says where it is. Whether it is to lead anything is the operator's to say.
    decommissioned = known is not None and known.instance.decommissioned
    instance = replace(registration.instance, decommissioned=decommissioned)
    same_place = known is not None and known.instance == instance
    same_journal = known is not None and (
        _is_known(registration, known)
        and registration.journal_end_offset <= known.journal_end_offset
    )
    if same_place and same_journal:
        return None
    return InstanceRecord(
        version=version if same_place else version + 1,
        instance=instance,
        claim_epoch=registration.claim_epoch,
        claim_token=registration.claim_token,
        journal_end_offset=registration.journal_end_offset,
    )
