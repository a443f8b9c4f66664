"""How cost grows: `make bench-growth`.

One thing grows at a time, in a cluster of its own; at each point, the same operations are measured.
Processor time per operation says more than the clock: it does not depend on what else the machine
does. A curve's exponent is the slope of its line when both axes are logarithmic: 0 is flat, 1 is
proportional.
"""
