"""Semel's transaction coordinator and controller."""
