"""Generated from protos/semel/common/journal, where each message is explained."""
