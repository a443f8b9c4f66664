package semel.bench;

import java.util.ArrayList;
import java.util.List;

/** When the clock starts and stops: the rule of bench/clients/meter.py. For several threads. */
final class Meter {
  private static final double NS_PER_S = 1e9;
  private static final int TRANSACTIONS_MIN = 3;

  private final Order.Task task;
  private final Runnable began;
  private final double warmAtS;
  private final List<Double> latenciesMs = new ArrayList<>();
  private double startedS = -1;
  private double untilS;
  private double endedS;
  private long allRecords;
  private long transactions;
  private long records;

  Meter(Order.Task task, Runnable began) {
    this.task = task;
    this.began = began;
    warmAtS = nowS() + task.warmUpS();
  }

  synchronized boolean over() {
    return allRecords >= task.recordsMax() || (startedS >= 0 && enough(nowS()));
  }

  /** Counts a transaction that has ended, or of a consumer, a poll. */
  void ended(long count) {
    ended(count, -1);
  }

  synchronized void ended(long count, double latencyMs) {
    double now = nowS();
    allRecords += count;
    if (startedS < 0) {
      if (now >= warmAtS) {
        startedS = now;
        untilS = now + task.durationS();
        began.run();
      }
      return;
    }
    if (enough(now)) {
      return;
    }
    endedS = now;
    transactions++;
    records += count;
    if (latencyMs >= 0) {
      latenciesMs.add(latencyMs);
    }
  }

  synchronized Sample sample() {
    if (transactions == 0) {
      throw new IllegalStateException(
          task.name() + ": " + allRecords + " records are too few to measure");
    }
    return new Sample(endedS - startedS, transactions, records, latenciesMs);
  }

  private boolean enough(double now) {
    return now >= untilS && transactions >= TRANSACTIONS_MIN;
  }

  private static double nowS() {
    return System.nanoTime() / NS_PER_S;
  }
}
