"""What both sides of Semel's wire agree on: errors, ids, partitioner, record batches, connections."""
