"""Jobs of Spark that crash on purpose, and what must be in their output topics all the same.

``python -m crashes`` runs all scenarios (``make pipeline-chaos``); tests of the sink run short
ones.
"""
