"""The caller's identity, and the proof: TLS, tokens and the gate of each listener."""
