"""Records become batches: partitioning, sizes, sequences. ``accumulator`` is a pure machine."""
