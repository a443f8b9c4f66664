"""Measures speed and memory of a real cluster: `make bench`.

Every figure is the median of several runs against processes over loopback, with fsync on, clients
and servers on the same cores. Nothing here is a test: people read the figures, and compare ratios.
"""
