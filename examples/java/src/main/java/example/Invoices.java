package example;

import java.util.List;
import semel.broker.v1.Broker.FetchPartition;
import semel.broker.v1.Broker.FetchPartitionResult;
import semel.broker.v1.Broker.FetchRequest;
import semel.broker.v1.Broker.IsolationLevel;
import semel.broker.v1.Broker.PlainRecords;
import semel.broker.v1.Broker.ProducePartition;
import semel.broker.v1.Broker.ProduceRequest;
import semel.common.v1.ParticipantsOuterClass.Participants;
import semel.common.v1.ParticipantsOuterClass.TopicPartitions;
import semel.group.v1.Group.FetchOffsetsRequest;
import semel.group.v1.Group.OffsetCommitPartition;
import semel.group.v1.Group.OffsetCommitTopic;
import semel.group.v1.Group.OffsetFetchTopic;
import semel.group.v1.Group.TxnOffsetCommitRequest;

/** Takes every order of one topic exactly once into others, each topic of one partition. */
record Invoices(Cluster cluster, Producer producer, String groupId, String orders, List<String> outputs) {
  /** {@code java -jar invoices.jar BOOTSTRAP ORDERS OUTPUTS…}; status 3: another instance has taken over. */
  public static void main(String[] arguments) throws InterruptedException {
    try (var cluster = new Cluster(arguments[0])) {
      String orders = arguments[1];
      var producer = new Producer(cluster, "invoicer-of-" + orders);
      var outputs = List.of(arguments).subList(2, arguments.length);
      new Invoices(cluster, producer, "invoicers-of-" + orders, orders, outputs).run();
    } catch (Failure failure) {
      System.err.println(failure.getMessage());
      System.exit(failure.isFenced() ? 3 : 1);
    }
  }

  private void run() throws InterruptedException {
    long offset = committed();
    for (long end = offset + 1; offset < end; ) {
      FetchPartitionResult read = fetch(offset);
      boolean committed = read.getRecordsCount() == 0;
      while (!committed) { // What was aborted is done once more.
        committed = transaction(read);
      }
      offset = read.getNextOffset();
      end = read.getHighWatermark();
    }
  }

  /** Returns where the group stands. */
  private long committed() throws InterruptedException {
    // Stable: not before every transaction of the instance before this one has ended at the group.
    var ask = FetchOffsetsRequest.newBuilder().setGroupId(groupId).setRequireStable(true)
        .addTopics(OffsetFetchTopic.newBuilder().setTopic(orders).addPartitions(0)).build();
    return cluster.again(() -> {
      var found = cluster.offsetsOf(groupId).fetchOffsets(ask).getOffsets(0);
      Failure.check(found.getError());
      return Math.max(found.getCommittedOffset(), 0);
    });
  }

  /** Reads what is committed; the broker leaves out what is open or aborted. */
  private FetchPartitionResult fetch(long offset) throws InterruptedException {
    var request = FetchRequest.newBuilder().setIsolationLevel(IsolationLevel.ISOLATION_LEVEL_READ_COMMITTED)
        .setPlainRecords(true).setMinBytes(1).setMaxBytes(4096).setMaxWaitMs(500)
        .addPartitions(FetchPartition.newBuilder().setTopic(orders).setFetchOffset(offset)).build();
    return cluster.again(() -> {
      var read = cluster.leaderOf(orders).fetch(request).getPartitions(0);
      Failure.check(read.getError());
      return read;
    });
  }

  /** Writes to all outputs and moves the group, all or nothing; false: it was aborted. */
  private boolean transaction(FetchPartitionResult read) throws InterruptedException {
    var written = Participants.newBuilder().addGroupIds(groupId);
    try {
      commitOffset(read.getNextOffset());
      for (String topic : outputs) {
        written.addTopics(TopicPartitions.newBuilder().setTopicId(produce(topic, read)).addPartitions(0));
      }
    } catch (Failure failure) {
      if (!failure.isAbortable()) {
        throw failure;
      }
      System.err.println("aborting: " + failure.getMessage());
      // What was refused may still arrive: such a transaction never commits.
      return producer.abort();
    }
    return producer.commit(written.build());
  }

  /** Returns the id of the topic. */
  private String produce(String topic, FetchPartitionResult read) throws InterruptedException {
    // A transaction's first batch in a partition has sequence 0; the next one has as many more as this has records.
    var records = PlainRecords.newBuilder().addAllRecords(read.getRecordsList()).setProducerId(producer.producerId)
        .setProducerEpoch(producer.producerEpoch).setBaseSequence(0).setTransactional(true);
    var request = ProduceRequest.newBuilder().setTransactionalId(producer.id)
        .addPartitions(ProducePartition.newBuilder().setTopic(topic).setRecords(records)).build();
    return cluster.again(() -> { // The same request each time: so the broker knows a repeat.
      var result = cluster.leaderOf(topic).produce(request).getPartitions(0);
      Failure.check(result.getError());
      return result.getTopicId();
    });
  }

  private void commitOffset(long offset) throws InterruptedException {
    var request = TxnOffsetCommitRequest.newBuilder().setTransactionalId(producer.id).setProducerId(producer.producerId)
        .setProducerEpoch(producer.producerEpoch).setGroupId(groupId).setMemberEpoch(-1)
        .addTopics(OffsetCommitTopic.newBuilder().setTopic(orders)
            .addPartitions(OffsetCommitPartition.newBuilder().setCommittedOffset(offset))).build();
    cluster.again(() -> cluster.offsetsOf(groupId).txnOffsetCommit(request));
  }
}
