"""Whether this instance has taken charge of its transaction-log partitions."""

import structlog

from semel_common.errors import CoordinatorLoadInProgressError
from semel_coordinator.transactions.machine import TransactionsMachine
from semel_coordinator.transactions.rpc.runner_access import Runs

log = structlog.get_logger(__name__)


class Claim:
    """Each RPC checks it first."""

    def __init__(self, runner: Runs, machine: TransactionsMachine) -> None:
        self._runner = runner
        self._machine = machine
        self._is_taken = False

    async def take(self) -> None:
        """Take charge of this instance's transaction-log partitions; then requests are served.

        The caller does so once at each start, as soon as the cluster's layout is known; before
        that, it raises CoordinatorNotAvailableError.
        """
        await self._runner.run(self._machine.moves.follow, privileged=True)
        partitions = await self._runner.run(self._machine.claim, privileged=True)
        self._is_taken = True
        log.info("transaction-log partitions claimed", partitions=partitions)

    def check(self) -> None:
        """Raise CoordinatorLoadInProgressError before `take`."""
        if not self._is_taken:
            raise CoordinatorLoadInProgressError("this coordinator has not taken charge yet")
