"""The RPCs about the instances of a cluster."""
