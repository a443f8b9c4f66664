"""Frames on the server's side: sessions over sockets and over gRPC streams."""
