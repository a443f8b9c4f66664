"""The consumer as a member of a group: heartbeats, rebalances and committed offsets."""
