"""How many transactional ids each principal has made: a count that follows the records. Pure.

An id belongs to the principal that made it, for as long as the id is known, whichever principal
writes under it later: the principal is in the record of the id, so the count outlives restarts and
snapshots and moves with the id. An id that an earlier release recorded belongs to no principal.
"""

from collections.abc import Mapping

from semel_common.errors import ThrottlingQuotaExceededError


class IdsOfPrincipals:
    """The count of each principal that has any id."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._counts: dict[str, int] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """The count of each principal, none of them 0."""
        return self._counts

    def enter(self, before: str | None, after: str) -> None:
        """Count an id that is recorded; ``before``: the principal of its last record, if any."""
        if before is not None:
            self.leave(before)
        if after:
            self._counts[after] = self._counts.get(after, 0) + 1

    def leave(self, principal: str) -> None:
        """Count off an id that is not known any more."""
        if not principal:
            return
        left = self._counts[principal] - 1
        if left:
            self._counts[principal] = left
        else:
            del self._counts[principal]

    def check_room(self, principal: str, ids_max: int) -> None:
        """Raise ThrottlingQuotaExceededError if a principal has all the ids that it may have."""
        if ids_max and self._counts.get(principal, 0) >= ids_max:
            raise ThrottlingQuotaExceededError(
                f"{principal} has {ids_max} transactional ids at this coordinator, which is"
                " transactional_ids_per_principal_max: use the ids that there are again, wait"
                " until idle ones expire (transactional_id_expiration_ms), or raise the setting",
                ids_max=ids_max,
            )
