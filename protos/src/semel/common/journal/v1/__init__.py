"""Generated from protos/semel/common/journal/v1, where each message is explained."""
