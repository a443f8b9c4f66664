"""Traces of whole transactions, as a collector gets them: from processes, and from one process."""
