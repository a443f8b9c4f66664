"""A cluster of real processes under real faults: killed, stopped, cut off, out of disk.

`run` tells the story of one run. What its clients record is judged by `semel_checker`, as in
`simulation`, whose workloads these are; docs/verification.md says what a run does.
"""
