"""Generated from protos/semel/common, where each message is explained."""
