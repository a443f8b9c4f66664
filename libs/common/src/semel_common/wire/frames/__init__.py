"""Frames: many calls over one connection, by a socket or by a gRPC stream."""
