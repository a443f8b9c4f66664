"""The RPCs about moves of partitions."""
