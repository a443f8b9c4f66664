"""How a relay goes on when the cluster has committed versions that its database does not know.

The database went back to a backup. New rows would get versions that are committed, and the
coordinator would take them for repeats: so the relay stops, or takes a new owner for its versions.
"""

from aiosemel._outbox.outbox_table import Charge
from aiosemel.errors import DatabaseBehindError
from aiosemel.types.after_restore import AfterRestore


def charge_after_restore(
    what: str, charge: Charge, committed: int, after_restore: AfterRestore, new_owner: str
) -> Charge:
    """Return how to go on; the same owner means that the rows of the backup are deleted.

    ``what`` names the outbox, for errors. Raises DatabaseBehindError.
    """
    match after_restore:
        case AfterRestore.STOP:
            raise DatabaseBehindError(
                f"the database of {what} gives version {charge.next_version} next, and the cluster"
                f" has committed version {committed}: the database went back to a backup, from"
                f" before {committed - charge.next_version + 1} versions. Go on with"
                " after_restore=AfterRestore.REPROCESS (sends all remaining rows, some of them a"
                " second time) or after_restore=AfterRestore.SKIP (deletes all remaining rows)"
            )
        case AfterRestore.REPROCESS:
            return Charge(new_owner, 1)
        case AfterRestore.SKIP:
            return Charge(charge.owner, committed + 1)
