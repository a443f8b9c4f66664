"""Where groups stand: committed offsets, and those that open transactions hold. Pure."""
