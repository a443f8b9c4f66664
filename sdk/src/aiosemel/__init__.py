"""The asyncio client of Semel: exactly-once transactions over gRPC."""
