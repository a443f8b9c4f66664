"""The controller's records as protobuf."""
