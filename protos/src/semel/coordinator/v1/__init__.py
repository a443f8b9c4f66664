"""Generated from protos/semel/coordinator/v1, where each message is explained."""
