"""Proof, case by case, that no transaction hangs (protocol.md, section 6).

`stage` is a whole cluster of the simulation, in fair weather, on which one transaction after the
other is played with one thing going wrong in each. The tests go through everything that can.
"""
