"""Lets time pass for the machine: aborts transactions that are open for too long."""

import asyncio

import structlog

from semel_coordinator.transactions.machine import TransactionsMachine
from semel_coordinator.transactions.rpc.runner_access import Runs
from semel_runtime.clock import Clock

log = structlog.get_logger(__name__)


async def sweep(
    runner: Runs,
    machine: TransactionsMachine,
    clock: Clock,
    *,
    interval_ms: int,
) -> None:
    """Tick every `interval_ms`, until cancelled. To be run after `claim`."""
    while True:
        await asyncio.sleep(interval_ms / 1000)
        await abort_timed_out(runner, machine, clock)


async def abort_timed_out(runner: Runs, machine: TransactionsMachine, clock: Clock) -> None:
    """Abort everything that is timed out now, in bounded steps."""
    now_ms = clock.now_ms()
    while timed_out := await runner.run(lambda: machine.tick(now_ms), privileged=True):
        for transactional_id, key in timed_out:
            log.info(
                "transaction timed out",
                transactional_id=transactional_id,
                producer_id=key.producer_id,
                producer_epoch=key.producer_epoch,
            )
    await _abort_timed_out_versions(runner, machine, now_ms)


async def _abort_timed_out_versions(
    runner: Runs, machine: TransactionsMachine, now_ms: int
) -> None:
    """Abort every joint transaction that is timed out now, until there is none."""
    while timed_out := await runner.run(lambda: machine.joint.tick(now_ms), privileged=True):
        for version in timed_out:
            log.info(
                "joint transaction timed out",
                transactional_id=version.transactional_id,
                txn_version=version.txn_version,
                run=version.run,
                writers=version.writers,
            )
