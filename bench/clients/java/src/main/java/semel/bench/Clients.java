package semel.bench;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Makes producers and consumers with the settings of an order. */
record Clients(String bootstrap, Order order) {
  KafkaProducer<byte[], byte[]> producer(int number) {
    Map<String, Object> settings = new HashMap<>(order.settings().producer());
    settings.put("bootstrap.servers", bootstrap);
    settings.put("transactional.id", order.task().name() + "-" + number);
    var producer =
        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    producer.initTransactions();
    return producer;
  }

  KafkaConsumer<byte[], byte[]> consumer(String groupId) {
    Map<String, Object> settings = new HashMap<>(order.settings().consumer());
    settings.put("bootstrap.servers", bootstrap);
    if (groupId != null) {
      settings.put("group.id", groupId);
    }
    return new KafkaConsumer<>(
        settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  List<TopicPartition> partitions(String topic) {
    return IntStream.range(0, order.workload().partitions())
        .mapToObj(index -> new TopicPartition(topic, index))
        .toList();
  }

  void createTopic() throws ExecutionException, InterruptedException {
    try (var admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap))) {
      var topic = new NewTopic(order.task().name(), order.workload().partitions(), (short) 1);
      admin.createTopics(List.of(topic)).all().get();
    }
  }
}
