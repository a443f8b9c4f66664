"""The whole cluster with its clients in one process, in virtual time, under seeded faults.

`run` simulates one seed. `world` is the event loop, `network`, `disk` and `processes` are the
machines; `workloads` are the clients, `faults` hit all of them. `invariants` hold after every step;
`recorded` keeps the history of the clients, which is checked at the end.
"""
