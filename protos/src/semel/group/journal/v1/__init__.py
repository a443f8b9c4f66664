"""Generated from protos/semel/group/journal/v1, where each message is explained."""
