"""Parts that all commands share: the choice of the cluster, questions and output."""
