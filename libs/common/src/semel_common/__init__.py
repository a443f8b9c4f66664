"""What both sides of the wire agree on: errors, ids, partitioner, record batches, connections."""
