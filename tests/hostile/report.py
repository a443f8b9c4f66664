"""The table of attacks, a row each, in Markdown."""

from hostile.attack import Verdict

HEAD = (
    "| attack | RPC | transport | caller | calls | MiB sent | processor ms | peak MiB | held MiB |"
    " polite p99 ms | polite max ms | results | |\n"
    "|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|---|---|"
)


def row(verdict: Verdict) -> str:
    """Return one row; of the services, the one that took most counts in each column."""
    attack, sent, polite = verdict.attack, verdict.sent, verdict.politeness
    usage = verdict.usage.values()
    cells = (
        attack.name,
        attack.rpc,
        attack.transport,
        attack.caller,
        f"{sent.calls:,}",
        f"{sent.size_bytes / (1 << 20):.1f}",
        f"{max((each.processor_ms for each in usage), default=0):.0f}",
        f"{max((each.peak_bytes for each in usage), default=0) >> 20}",
        f"{max((each.held_bytes for each in usage), default=0) >> 20}",
        f"{polite.p99_ms:.0f}",
        f"{polite.max_ms:.0f}",
        ", ".join(f"{count:,} {result}" for result, count in sent.results.most_common(4)),
        "**succeeded**" if verdict.violations else "",
    )
    return f"| {' | '.join(cells)} |"
