"""DeleteRecords: checks the form, lets the machine decide, writes the response."""

from functools import partial

from semel.broker.v1 import broker_pb2 as wire
from semel_broker.machine import BrokerMachine
from semel_broker.machine.records import Record
from semel_broker.machine.values import DeletePosition
from semel_broker.rpc.partition_names import partition_name
from semel_common.errors import InvalidRequestError, SemelError
from semel_common.wire.messages.request_bounds import ASKED_PARTITIONS_MAX
from semel_common.wire.status import to_value
from semel_runtime.runner import Runner
from semel_runtime.server.calls import Call
from semel_runtime.server.form_checks import require_count, require_int


class RecordDeleter:
    """Answers DeleteRecords."""

    def __init__(self, runner: Runner[Record], machine: BrokerMachine) -> None:
        self._runner = runner
        self._machine = machine

    async def delete_records(
        self, request: wire.DeleteRecordsRequest, call: Call
    ) -> wire.DeleteRecordsResponse:
        """Delete from each partition for itself; errors are values."""
        del call
        require_count("partitions", request.partitions, minimum=1, maximum=ASKED_PARTITIONS_MAX)
        positions = [_checked(partition) for partition in request.partitions]
        decide = partial(
            self._machine.log_starts.delete_records, positions, validate_only=request.validate_only
        )
        # A full disk must not keep anybody from deleting.
        answers = await self._runner.run(decide, privileged=True)
        response = wire.DeleteRecordsResponse()
        for position, answer in zip(positions, answers, strict=True):
            result = response.partitions.add()
            if isinstance(answer, SemelError):
                result.topic_id = position.name.topic_id
                result.partition = position.name.partition
                result.error.CopyFrom(to_value(answer))
            else:
                result.topic_id = answer.partition.topic_id
                result.partition = answer.partition.partition
                result.log_start_offset = answer.log_start_offset
                result.deleted_offsets = answer.deleted_offsets
        return response


def _checked(partition: wire.DeleteRecordsPartition) -> DeletePosition:
    match partition.WhichOneof("position"):
        case "before_offset":
            before = require_int("before_offset", partition.before_offset)
            return DeletePosition(partition_name(partition), before)
        case "all" if partition.all:
            return DeletePosition(partition_name(partition), None)
        case _:
            raise InvalidRequestError("neither before_offset nor all is set", field="before_offset")
