"""Generated from protos/semel/broker/v1, where each message is explained."""
