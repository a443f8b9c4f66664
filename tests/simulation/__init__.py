"""The whole cluster and its clients in one process, in virtual time, under faults that a seed decides.

`run` simulates one seed. `world` is what everything runs on, `network`, `disk` and `processes` are
what it runs with; `workloads` are the clients, `faults` what happens to all of them; `invariants`
hold after every step, `verdict` at the end.
"""
