"""Generated from protos/semel/broker/journal/v1, where each message is explained."""
