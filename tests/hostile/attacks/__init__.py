"""All attacks, in the order in which they run."""

from hostile.attacks import (
    clusters,
    connections,
    fuzzing,
    lists,
    messages,
    metrics,
    payloads,
    quotas,
    registrations,
    tokens,
)

ALL = (
    *messages.ATTACKS,
    *connections.ATTACKS,
    *tokens.ATTACKS,
    *metrics.ATTACKS,
    *payloads.ATTACKS,
    *quotas.ATTACKS,
    *lists.ATTACKS,
    *clusters.ATTACKS,
    *registrations.ATTACKS,
    *fuzzing.ATTACKS,
)
