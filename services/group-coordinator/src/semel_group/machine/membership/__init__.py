"""The members of each group, and the partitions of each member. Pure."""
