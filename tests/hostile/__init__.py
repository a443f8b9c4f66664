"""Hostile clients against real processes, with TLS, tokens and access rules on.

An *attack* is a program: it opens connections and sends messages as one caller, over one transport.
While it runs, a *polite client* in a process of its own goes on with transactions and reads, and an
*observer* takes the processor time and the memory of each service. An attack succeeds, which is a
failure of Semel, if a service ends, logs a traceback, keeps too much memory, or makes the polite
client fail or wait too long, or if the attack's own answers are not what the attack expects.

    stage.py      a cluster, its certificates, tokens and access rules
    callers.py    the callers: without a token, without a rule, a writer, an administrator
    lines.py      the transports: unary calls, frames over gRPC, frames over a socket, bare sockets
    wire.py       protobuf's wire format, written by hand
    polite.py     the polite client: ``python -m hostile.polite``
    observer.py   processor time and memory of the services
    attack.py     an attack, and its verdict
    attacks/      the attacks, one module for each kind; ``ALL`` in its ``__init__``

``make hostile`` runs all of them and prints a table; ``make hostile ATTACKS="a b"`` runs some.
``test_hostile.py`` runs those marked as quick.
"""
