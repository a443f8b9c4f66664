"""Generated from protos/semel/group, where each message is explained."""
