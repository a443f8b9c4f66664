"""Generated from protos/semel/group/v1, where each message is explained."""
