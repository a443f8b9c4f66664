"""Semel's wire and journal messages: generated code, .proto files and their descriptor set."""
