"""The state-machine runtime of Semel's services: journal, runner, server, settings, logging."""
