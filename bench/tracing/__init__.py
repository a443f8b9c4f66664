"""What tracing costs: in processor time, as is paid for, and in instructions, as can be told."""
