"""Generated from protos/semel/coordinator/journal/v1, where each message is explained."""
