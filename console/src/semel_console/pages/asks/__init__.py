"""Questions to the cluster that several pages have."""
