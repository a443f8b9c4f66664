"""Generated from protos/semel/common/v1, where each message is explained."""
