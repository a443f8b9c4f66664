"""Generated from protos/semel/coordinator, where each message is explained."""
