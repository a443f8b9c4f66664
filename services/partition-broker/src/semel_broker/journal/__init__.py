"""The broker's records as protobuf."""
