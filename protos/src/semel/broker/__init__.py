"""Generated from protos/semel/broker, where each message is explained."""
