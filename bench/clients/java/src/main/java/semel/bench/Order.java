package semel.bench;

import java.util.Map;

/** What the harness says in one line; the names are those of bench/workloads.py. */
record Order(Task task, Settings settings) {
  record Task(
      Workload workload,
      String name,
      String source,
      long recordsMax,
      double warmUpS,
      double durationS) {}

  record Workload(
      String kind,
      int recordsPerTransaction,
      int recordSizeBytes,
      int producers,
      int partitions,
      String call) {}

  record Settings(Map<String, Object> producer, Map<String, Object> consumer) {}

  Workload workload() {
    return task.workload();
  }
}
