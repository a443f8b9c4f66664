"""Record batches: columns, payloads, compression, sequence numbers and partitioning."""
