"""Reads topics into frames, batch and streaming."""
