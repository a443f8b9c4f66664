"""`semel recover broker`: makes its older or empty volume fit to serve."""

from functools import partial
from pathlib import Path

from semel_broker.journal.record_serde import BrokerSerde
from semel_broker.machine import BrokerMachine, LogLimits
from semel_broker.machine.records import Record
from semel_broker.rpc.fetch_waiters import Waiters
from semel_broker.rpc.outcome_writer import OutcomeWriter
from semel_common.errors import SemelError
from semel_runtime.clock import SystemClock
from semel_runtime.cluster.metadata_image import ClusterImage
from semel_runtime.recovery import Recovered, Recovery, recover_volume
from semel_runtime.runner import Runner


async def recover(folder: Path, recovery: Recovery, image: ClusterImage) -> Recovered:
    """Abort open transactions, and let every log go on above all offsets that were ever given.

    Raises what ``recover_volume`` and ``ClusterCopy.update`` raise.
    """
    machine = BrokerMachine(recovery.instance_id, LogLimits())
    return await recover_volume(
        folder,
        machine,
        BrokerSerde(),
        recovery,
        partial(_raise_all, machine, recovery, image),
        service="semel-broker",
        cluster_id=image.cluster_id,
    )


async def _raise_all(
    machine: BrokerMachine, recovery: Recovery, image: ClusterImage, runner: Runner[Record]
) -> dict[str, int | str]:
    raised = machine.raise_logs(image, recovery.floor)
    outcomes = await runner.run(machine.all_aborted)
    if not recovery.dry_run:
        waiters = Waiters(machine.reads.readable_beyond)
        writer = OutcomeWriter(runner, machine, waiters, SystemClock())
        refusals = await writer.write(outcomes)
        refused: SemelError | None = next(filter(None, refusals), None)
        if refused is not None:
            raise refused
        await runner.run(lambda: machine.raise_logs(image, recovery.floor), privileged=True)
    return {
        "partitions that go on": raised.response.kept,
        "partitions lost": raised.response.new,
        "partitions of deleted topics": raised.response.dropped,
        "open transactions aborted": len(outcomes),
        "next offset": recovery.floor,
    }
