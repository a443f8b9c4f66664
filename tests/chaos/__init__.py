"""A cluster of real processes under real faults: killed, stopped, cut off, out of disk.

`run` tells the story of one run. `semel_checker` checks the history that its clients record, as in
`simulation`, whose workloads these are; docs/internals/verification.md says what a run does.
"""
