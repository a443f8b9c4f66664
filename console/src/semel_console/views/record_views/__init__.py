"""Records of topics: pages of one log, and tails. No I/O."""
