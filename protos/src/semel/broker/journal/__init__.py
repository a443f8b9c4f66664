"""Generated from protos/semel/broker/journal, where each message is explained."""
