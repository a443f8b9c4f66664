"""Joint transactions outside of the machine: on the wire, in the journal, and as RPCs."""
