"""The shape of a transaction's trace; each check returns the missing spans and links."""

from collections.abc import Iterator, Sequence

from tracing.spans import Seen, Trace
from tracing.story import APPLICATION, PARTICIPANTS, PARTITIONS

COORDINATOR = "semel-coordinator"
BROKER = "semel-broker"
GROUP = "semel-group"
COMMIT = "journal commit"


def check_transaction(trace: Trace, *, killed: bool = False) -> list[str]:
    """Check one transaction; ``killed``: its coordinator was, after the decision.

    What a killed process had not exported yet is lost: of its own spans none is asked for then.
    """
    found = trace.named("transaction", APPLICATION)
    if len(found) != 1:
        return [f"{len(found)} spans are called transaction"]
    transaction = found[0]
    problems = list(_participation(trace, transaction))
    ends = [each for each in trace.below(transaction) if each.short_name == "EndTxn"]
    if not ends:
        return [*problems, "no EndTxn below the transaction"]
    if transaction.attributes.get("semel.outcome") != "COMMITTED":
        problems.append(f"the outcome is {transaction.attributes.get('semel.outcome')}")
    if not killed:
        problems += _served(trace, ends[0], COORDINATOR)
    return problems + list(_fan_out(trace, ends))


def check_reading(reading: Trace, *written: Trace) -> list[str]:
    """Check that the polls are linked to all sends."""
    linked = {link for each in reading.named("poll orders", APPLICATION) for link in each.links}
    return [
        f"no poll is linked to partition {_partition(send)} of trace {send.place.trace_id}"
        for trace in written
        for send in trace.named("send orders")
        if send.place not in linked
    ]


def _participation(trace: Trace, transaction: Seen) -> Iterator[str]:
    sends = [each for each in trace.below(transaction) if each.short_name == "send orders"]
    partitions = sorted(_partition(each) for each in sends)
    if partitions != [str(number) for number in range(PARTITIONS)]:
        yield f"sends below the transaction are to partitions {partitions}"
    for send in sends:
        calls = [each for each in trace.below(send) if each.short_name == "Produce"]
        if not calls:
            yield f"the send to partition {_partition(send)} has no Produce"
        for call in calls:
            yield from _served(trace, call, BROKER)
    offsets = [each for each in trace.below(transaction) if each.short_name == "TxnOffsetCommit"]
    if len(offsets) != 1:
        yield f"{len(offsets)} TxnOffsetCommit below the transaction"
    for call in offsets:
        yield from _served(trace, call, GROUP)


def _fan_out(trace: Trace, ends: Sequence[Seen]) -> Iterator[str]:
    """Check markers and completion, all below EndTxn, which a coordinator may refuse at first."""
    below = [each for end in ends for each in trace.below(end)]
    markers = [
        each
        for each in below
        if each.short_name == "WriteTxnMarkers"
        and each.attributes.get("rpc.response.status_code") == "OK"
    ]
    told = sorted({str(marker.attributes["semel.instance"]) for marker in markers})
    if told != sorted(PARTICIPANTS):
        yield f"markers went to {told}"
    for call in markers:
        is_broker = str(call.attributes["semel.instance"]).startswith("broker")
        yield from _served(trace, call, BROKER if is_broker else GROUP)
    completions = [each for each in below if each.short_name == "complete transaction"]
    if len(completions) != 1:
        yield f"{len(completions)} completions below EndTxn"


def _served(trace: Trace, call: Seen, service: str) -> Iterator[str]:
    """Check that a call was answered by a service, which has made it durable."""
    servers = [
        each
        for each in trace.below(call)
        if (each.name, each.service) == (call.name, service)
        and each.attributes.get("rpc.system.name") == "grpc"
    ]
    if not servers:
        yield f"{call.short_name} was not served by {service}"
    for server in servers:
        yield from _committed(trace, server)


def _committed(trace: Trace, span: Seen) -> Iterator[str]:
    """Check the commits below a request; one that was refused has none."""
    if span.attributes.get("rpc.response.status_code", "OK") != "OK":
        return
    commits = [each for each in trace.below(span) if each.name == COMMIT]
    if not commits:
        yield f"{span.short_name} of {span.service} has no {COMMIT}"
    for commit in commits:
        for name in ("semel.journal.records", "semel.journal.append_ms", "semel.journal.write_ms"):
            if not commit.attributes.get(name):
                yield f"{COMMIT} of {span.short_name} lacks {name}"


def _partition(send: Seen) -> str:
    return str(send.attributes.get("messaging.destination.partition.id"))
