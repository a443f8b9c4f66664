"""Older copies of volumes, and empty ones, brought back into service with `semel recover`.

`stage` is a cluster of real processes whose volumes are copied, put back, and lost.
"""
