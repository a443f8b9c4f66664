"""The real machines, explored instead of sampled: every order of events, breadth first.

One coordinator, a broker and a group as participants, and two instances of one client that want two
epochs each. A message may arrive never, late, repeatedly and in any order; each service may crash
and lose the records that it has not synced; time-outs come at any time. `nodes` runs the machines
and remembers the step of each machine for each message, `cluster` has the events of a state and the
rules that must hold in it, `search` goes through the states. ``python -m exploration`` runs it.
"""
