"""All attacks, in the order in which they run."""

from hostile.attacks import connections, fuzzing, messages, payloads, quotas, tokens

ALL = (
    *messages.ATTACKS,
    *connections.ATTACKS,
    *tokens.ATTACKS,
    *payloads.ATTACKS,
    *quotas.ATTACKS,
    *fuzzing.ATTACKS,
)
