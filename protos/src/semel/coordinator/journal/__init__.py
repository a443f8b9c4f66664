"""Generated from protos/semel/coordinator/journal, where each message is explained."""
