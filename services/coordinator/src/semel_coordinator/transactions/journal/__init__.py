"""The records of transactions as protobuf."""
