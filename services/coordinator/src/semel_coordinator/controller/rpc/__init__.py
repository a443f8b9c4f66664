"""The RPCs of ClusterService."""
