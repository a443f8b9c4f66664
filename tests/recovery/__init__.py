"""Older copies of volumes, and empty ones, brought back into service with `semel recover`.

`stage` is a cluster of real processes; tests copy its volumes, put them back, and lose them.
"""
