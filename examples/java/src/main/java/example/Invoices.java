package example;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import io.grpc.*;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.*;
import java.util.*;
import java.util.concurrent.locks.LockSupport;
import java.util.function.*;
import semel.broker.v1.*;
import semel.common.v1.*;
import semel.coordinator.v1.*;
import semel.group.v1.*;

import static java.util.concurrent.TimeUnit.*;

/** Takes every order of one topic exactly once into others, each topic of one partition; docs/use/clients.md explains every call. */
record Invoices(String bootstrap, String orders, List<String> outputs, String transactionalId, String groupId, Deadline end,
    Metadata headers, Map<String, ManagedChannel> channels) {
  static volatile boolean stopped, done; // Stopped by a signal: it is done after the transaction in hand.

  /** Returns what to do about an error: every one has it on the wire. */
  static String classOf(StatusRuntimeException failure) {
    for (var detail : StatusProto.fromThrowable(failure).getDetailsList()) {
      try {
        var info = detail.unpack(ErrorInfo.class);
        if (info.getDomain().equals("semel")) { return info.getMetadataOrDefault("error_class", ""); }
      } catch (InvalidProtocolBufferException other) { // A detail of another type.
      }
    }
    return "REFRESH_RETRIABLE"; // It is gRPC's own: what was asked may have happened, or not.
  }

  /** Makes a call to who is in charge of a key until it is answered with anything but "not now", or the time is up. */
  <S extends AbstractBlockingStub<S>, T> T call(String key, Supplier<String> find, Function<Channel, S> stub, Function<S, T> call) {
    for (long pauseMs = 50; ; pauseMs = Math.min(2 * pauseMs, 1_000)) {
      try {
        if (channels.get(key) == null) {
          channels.put(key, Grpc.newChannelBuilder(find.get(), InsecureChannelCredentials.create()).keepAliveTime(30, SECONDS)
              .keepAliveTimeout(10, SECONDS).intercept(MetadataUtils.newAttachHeadersInterceptor(headers)).build());
        }
        return call.apply(stub.apply(channels.get(key)).withDeadlineAfter(5, SECONDS));
      } catch (StatusRuntimeException failure) {
        if (!Set.of("RETRIABLE", "REFRESH_RETRIABLE").contains(classOf(failure)) || end.isExpired()) {
          throw failure;
        } // Only the second one says that it may be another one; to ask once more costs little.
        Optional.ofNullable(channels.remove(key)).ifPresent(ManagedChannel::shutdown);
        LockSupport.parkNanos(MILLISECONDS.toNanos(pauseMs));
      }
    }
  }

  String coordinatorOf(CoordinatorType type, String key) {
    var request = FindCoordinatorRequest.newBuilder().setType(type).addKeys(key).build();
    var found = call("anyone", () -> bootstrap, ClusterServiceGrpc::newBlockingStub, at -> at.findCoordinator(request))
        .getCoordinators(0).getInstance();
    return found.getHost() + ":" + found.getPort();
  }

  <T> T transactions(Function<CoordinatorServiceGrpc.CoordinatorServiceBlockingStub, T> call) {
    return call("transactions", () -> coordinatorOf(CoordinatorType.COORDINATOR_TYPE_TRANSACTION, transactionalId),
        CoordinatorServiceGrpc::newBlockingStub, call);
  }

  <T> T group(Function<GroupServiceGrpc.GroupServiceBlockingStub, T> call) {
    return call("group", () -> coordinatorOf(CoordinatorType.COORDINATOR_TYPE_GROUP, groupId), GroupServiceGrpc::newBlockingStub, call);
  }

  <T> T leaderOf(String topic, Function<BrokerServiceGrpc.BrokerServiceBlockingStub, T> call) {
    return call("topic " + topic, () -> {
      // The controller is certain: of a topic that does not exist, this ends the program at once.
      var request = MetadataRequest.newBuilder().addTopics(topic).setFromController(true).build();
      var known = call("anyone", () -> bootstrap, ClusterServiceGrpc::newBlockingStub, at -> at.metadata(request));
      int leader = known.getTopics(0).getPartitions(0).getLeaderId();
      return known.getInstancesList().stream()
          .filter(each -> each.getRole() == ServiceRole.SERVICE_ROLE_BROKER && each.getInstanceId() == leader)
          .map(each -> each.getHost() + ":" + each.getPort()).findFirst().orElseThrow(Status.UNAVAILABLE::asRuntimeException);
    }, BrokerServiceGrpc::newBlockingStub, call);
  }

  /** Writes to all outputs and moves the group, all or nothing; false: it was aborted. */
  boolean commit(long producerId, long epoch, FetchPartitionResult read) {
    var end = EndTxnRequest.newBuilder().setTransactionalId(transactionalId).setProducerId(producerId).setProducerEpoch(epoch)
        .setResult(TransactionResult.TRANSACTION_RESULT_COMMIT).setParticipants(Participants.newBuilder().addGroupIds(groupId));
    var offset = OffsetCommitPartition.newBuilder().setCommittedOffset(read.getNextOffset());
    var moves = TxnOffsetCommitRequest.newBuilder().setTransactionalId(transactionalId).setProducerId(producerId).setProducerEpoch(epoch)
        .setGroupId(groupId).setMemberEpoch(-1).addTopics(OffsetCommitTopic.newBuilder().setTopic(orders).addPartitions(offset)).build();
    var records = PlainRecords.newBuilder().addAllRecords(read.getRecordsList()).setProducerId(producerId).setProducerEpoch(epoch)
        .setTransactional(true); // A first batch has sequence 0.
    try {
      group(at -> at.txnOffsetCommit(moves));
      for (String topic : outputs) { // The same request each time: so the broker knows a repeat.
        var request = ProduceRequest.newBuilder().setTransactionalId(transactionalId)
            .addPartitions(ProducePartition.newBuilder().setTopic(topic).setRecords(records)).build();
        // A send without an answer may still arrive: an abort names its topic, too.
        end.getParticipantsBuilder().addTopicsBuilder().setTopic(topic).addPartitions(0);
        leaderOf(topic, at -> at.produce(request));
      }
    } catch (StatusRuntimeException failure) {
      if (!classOf(failure).equals("ABORTABLE_TRANSACTION")) {
        throw failure;
      } // What was refused may still arrive: it never commits.
      end.setResult(TransactionResult.TRANSACTION_RESULT_ABORT);
    }
    try {
      transactions(at -> at.endTxn(end.build()));
      return end.getResult() == TransactionResult.TRANSACTION_RESULT_COMMIT;
    } catch (StatusRuntimeException failure) {
      var ask = GetTransactionOutcomeRequest.newBuilder().setTransactionalId(transactionalId).setProducerId(producerId)
          .setProducerEpoch(epoch).build();
      var outcome = transactions(at -> at.getTransactionOutcome(ask)).getOutcome();
      boolean committed = outcome == TransactionOutcome.TRANSACTION_OUTCOME_COMMITTED;
      if (committed || outcome == TransactionOutcome.TRANSACTION_OUTCOME_ABORTED && classOf(failure).equals("ABORTABLE_TRANSACTION")) {
        return committed;
      }
      throw failure; // If it was aborted, then by a newer instance.
    }
  }

  void run() {
    var begin = InitProducerIdRequest.newBuilder().setTransactionalId(transactionalId).setInitNumber(1)
        .setInstanceId(UUID.randomUUID().toString()).setTransactionTimeoutMs(30_000).setWait(WaitFor.WAIT_FOR_DECIDED).build();
    var first = MetadataRequest.getDefaultInstance();
    var clusterId = call("anyone", () -> bootstrap, ClusterServiceGrpc::newBlockingStub, at -> at.metadata(first)).getClusterId();
    // From here on, another cluster at these addresses refuses every call.
    headers.put(Metadata.Key.of("semel-cluster-id", Metadata.ASCII_STRING_MARSHALLER), clusterId);
    var begun = transactions(at -> at.initProducerId(begin)); // Fences others.
    // Stable: not before every transaction of the instance before this one has ended at the group.
    var ask = FetchOffsetsRequest.newBuilder().setGroupId(groupId).setRequireStable(true)
        .addTopics(OffsetFetchTopic.newBuilder().setTopic(orders).addPartitions(0)).build();
    long offset = Math.max(group(at -> at.fetchOffsets(ask)).getOffsets(0).getCommittedOffset(), 0);
    for (long end = offset + 1, epoch = begun.getProducerEpoch(); offset < end && !stopped; ) {
      var fetch = FetchRequest.newBuilder().setIsolationLevel(IsolationLevel.ISOLATION_LEVEL_READ_COMMITTED).setPlainRecords(true)
          .setMinBytes(1).setMaxRecords(2).setMaxWaitMs(500)
          .addPartitions(FetchPartition.newBuilder().setTopic(orders).setFetchOffset(offset)).build();
      var read = leaderOf(orders, at -> at.fetch(fetch)).getPartitions(0);
      for (boolean done = read.getRecordsCount() == 0; !done; epoch++) { // Never an answer's current_epoch: a successor's?
        done = commit(begun.getProducerId(), epoch, read); // What was aborted is done once more, in the next transaction.
      }
      offset = read.getNextOffset();
      end = read.getHighWatermark();
    }
  }

  /** {@code java -jar invoices.jar BOOTSTRAP ORDERS INVOICES AUDIT}; status 3: another instance has taken over. */
  public static void main(String... arguments) {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      stopped = true;
      for (int n = 0; !done && n < 1_000; n++) { LockSupport.parkNanos(MILLISECONDS.toNanos(10)); }
    }));
    int status = 0;
    var headers = new Metadata();
    headers.put(Metadata.Key.of("semel-errors", Metadata.ASCII_STRING_MARSHALLER), "status"); // Those inside an answer, too.
    try {
      new Invoices(arguments[0], arguments[1], List.of(arguments).subList(2, arguments.length), "invoicer-of-" + arguments[1],
          "invoicers-of-" + arguments[1], Deadline.after(2, MINUTES), headers, new HashMap<>()).run();
    } catch (StatusRuntimeException failure) {
      System.err.println(failure.getMessage());
      status = classOf(failure).equals("APPLICATION_RECOVERABLE") ? 3 : 1;
    }
    done = true;
    System.exit(status);
  }
}
