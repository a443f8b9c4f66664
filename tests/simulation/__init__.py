"""The whole cluster with its clients in one process, in virtual time, under seeded faults.

`run` simulates one seed. `world` is what everything runs on, `network`, `disk` and `processes` are
what it runs with; `workloads` are the clients, `faults` what happens to all of them. `invariants`
hold after every step; what clients saw is `recorded`, and checked at the end.
"""
