"""Generated from protos/semel/group/journal, where each message is explained."""
