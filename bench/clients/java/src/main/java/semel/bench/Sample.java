package semel.bench;

import java.util.List;

/** What was done on the clock. */
record Sample(double elapsedS, long transactions, long records, List<Double> latenciesMs) {}
