package semel.bench;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Each kind of workload, as bench/workloads.py describes it. */
record Workloads(Clients clients, Order order, Meter meter) {
  private static final Duration POLL_TIMEOUT = Duration.ofMillis(500);
  private static final double NS_PER_MS = 1e6;

  void run() throws Exception {
    if (!order.workload().kind().equals("consume")) {
      clients.createTopic();
    }
    switch (order.workload().kind()) {
      case "transactions" -> transactions();
      case "visible" -> visible();
      case "transform" -> transform();
      case "bulk" -> bulk();
      case "consume" -> consume();
      default -> throw new IllegalArgumentException(order.workload().kind());
    }
  }

  private void transactions() throws Exception {
    int producers = order.workload().producers();
    ExecutorService threads = Executors.newFixedThreadPool(producers);
    try {
      List<Callable<Void>> work = new ArrayList<>();
      for (int number = 0; number < producers; number++) {
        var producer = clients.producer(number);
        work.add(() -> transactions(producer));
      }
      for (Future<Void> each : threads.invokeAll(work)) {
        each.get();
      }
    } finally {
      threads.shutdown();
    }
  }

  private Void transactions(KafkaProducer<byte[], byte[]> producer) {
    try (producer) {
      while (!meter.over()) {
        double tookMs = transaction(producer);
        meter.ended(order.workload().recordsPerTransaction(), tookMs);
      }
    }
    return null;
  }

  /** Returns how long the commit took, in milliseconds. */
  private double transaction(KafkaProducer<byte[], byte[]> producer) {
    producer.beginTransaction();
    send(producer);
    long started = System.nanoTime();
    producer.commitTransaction();
    return (System.nanoTime() - started) / NS_PER_MS;
  }

  private void visible() throws Exception {
    BlockingQueue<Long> arrived = new LinkedBlockingQueue<>();
    var stop = new AtomicBoolean();
    ExecutorService thread = Executors.newSingleThreadExecutor();
    Future<?> polling = thread.submit(() -> poll(arrived, stop));
    try (var producer = clients.producer(0)) {
      while (!meter.over()) {
        long started = System.nanoTime();
        transaction(producer);
        long ended = started;
        for (int count = 0; count < order.workload().recordsPerTransaction(); count++) {
          ended = arrived.take();
        }
        meter.ended(order.workload().recordsPerTransaction(), (ended - started) / NS_PER_MS);
      }
    } finally {
      stop.set(true);
      polling.get();
      thread.shutdown();
    }
  }

  /** Says when each record has arrived. */
  private void poll(BlockingQueue<Long> arrived, AtomicBoolean stop) {
    try (var consumer = clients.consumer(null)) {
      consumer.assign(clients.partitions(order.task().name()));
      while (!stop.get()) {
        int count = consumer.poll(POLL_TIMEOUT).count();
        long now = System.nanoTime();
        for (int each = 0; each < count; each++) {
          arrived.add(now);
        }
      }
    }
  }

  private void transform() {
    String name = order.task().name();
    try (var producer = clients.producer(0);
        var consumer = clients.consumer(name)) {
      consumer.subscribe(List.of(order.task().source()));
      while (!meter.over()) {
        var polled = consumer.poll(POLL_TIMEOUT);
        if (polled.isEmpty()) {
          continue;
        }
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> each : polled) {
          producer.send(new ProducerRecord<>(name, each.partition(), null, each.value()));
        }
        producer.sendOffsetsToTransaction(polled.nextOffsets(), consumer.groupMetadata());
        producer.commitTransaction();
        meter.ended(polled.count());
      }
    }
  }

  private void bulk() {
    try (var producer = clients.producer(0)) {
      while (!meter.over()) {
        transaction(producer);
        meter.ended(order.workload().recordsPerTransaction());
      }
    }
  }

  private void consume() {
    try (var consumer = clients.consumer(null)) {
      consumer.assign(clients.partitions(order.task().source()));
      while (!meter.over()) {
        int count = consumer.poll(POLL_TIMEOUT).count();
        if (count > 0) {
          meter.ended(count);
        }
      }
    }
  }

  private void send(KafkaProducer<byte[], byte[]> producer) {
    byte[] value = new byte[order.workload().recordSizeBytes()];
    for (int number = 0; number < order.workload().recordsPerTransaction(); number++) {
      int partition = number % order.workload().partitions();
      producer.send(new ProducerRecord<>(order.task().name(), partition, null, value));
    }
  }
}
