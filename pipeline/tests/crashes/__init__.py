"""Jobs of Spark that crash on purpose, and the required contents of their output topics.

``python -m crashes`` runs all scenarios (``make pipeline-chaos``); tests of the sink run short
ones.
"""
