"""The real machines, explored instead of sampled: every order of events, breadth first.

One coordinator, a broker and a group as participants, and two instances of one client that want two
epochs each. What was sent may arrive never, late, repeatedly and in any order; each service may
crash and lose what it has not synced; time-outs come at any time. `nodes` runs the machines and
remembers what each did with each message, `cluster` says what can happen in a state and what must
hold in it, `search` goes through the states. ``python -m exploration`` runs it.
"""
