"""Jaeger's query API: a trace by its id."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator

from tracing.spans import Place, Seen, Trace

_TIMEOUT_S = 10.0


async def fetch(ui: str, trace_id: str) -> Trace:
    """Return a trace, empty if Jaeger does not know it yet."""
    return Trace(trace_id, await asyncio.to_thread(lambda: list(_ask(ui, trace_id))))


def _ask(ui: str, trace_id: str) -> Iterator[Seen]:
    url = f"{ui}/api/traces/{trace_id}"
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - it is ours
            traces = json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        traces = []
    for trace in traces:
        services = {key: each["serviceName"] for key, each in trace["processes"].items()}
        for span in trace["spans"]:
            # A link is a reference too; the parent is the only one that the span is a child of.
            parents = [each for each in span["references"] if each["refType"] == "CHILD_OF"]
            yield Seen(
                place=Place(span["traceID"].zfill(32), span["spanID"]),
                parent_id=parents[0]["spanID"] if parents else "",
                name=span["operationName"],
                service=services[span["processID"]],
                attributes={each["key"]: each["value"] for each in span["tags"]},
                links=tuple(
                    Place(each["traceID"].zfill(32), each["spanID"])
                    for each in span["references"]
                    if each["refType"] != "CHILD_OF"
                ),
                began_us=span["startTime"],
            )
