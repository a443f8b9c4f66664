package example;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import io.grpc.*;
import io.grpc.protobuf.StatusProto;
import java.util.*;
import java.util.concurrent.locks.LockSupport;
import java.util.function.*;
import semel.broker.v1.Broker.*;
import semel.broker.v1.BrokerServiceGrpc;
import semel.broker.v1.BrokerServiceGrpc.BrokerServiceBlockingStub;
import semel.common.v1.Errors;
import semel.common.v1.ParticipantsOuterClass.*;
import semel.coordinator.v1.Cluster.*;
import semel.coordinator.v1.ClusterServiceGrpc;
import semel.coordinator.v1.ClusterServiceGrpc.ClusterServiceBlockingStub;
import semel.coordinator.v1.CoordinatorServiceGrpc;
import semel.coordinator.v1.CoordinatorServiceGrpc.CoordinatorServiceBlockingStub;
import semel.coordinator.v1.Outcomes.*;
import semel.coordinator.v1.Transactions.*;
import semel.group.v1.Group.*;
import semel.group.v1.GroupServiceGrpc;
import semel.group.v1.GroupServiceGrpc.GroupServiceBlockingStub;

import static java.util.concurrent.TimeUnit.*;

/** Takes every order of one topic exactly once into others, each topic of one partition; docs/clients.md explains every call. */
record Invoices(String bootstrap, String orders, List<String> outputs, String transactionalId, String groupId, Deadline end,
    Map<String, ManagedChannel> channels, Map<String, ManagedChannel> routes) {
  // What to do about an error, by its reason: the same again; or abort, and do the transaction once more; or end.
  static final Set<String> RETRIABLE = Set.of("UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT",
      "BROKER_NOT_AVAILABLE", "NETWORK_EXCEPTION", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
      "CONCURRENT_TRANSACTIONS", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH", "UNSTABLE_OFFSET_COMMIT", "UNKNOWN_TOPIC_ID",
      "THROTTLING_QUOTA_EXCEEDED");
  static final Set<String> ABORTABLE = Set.of("OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE",
      "TRANSACTION_ABORTABLE", "BASE_OFFSET_MISMATCH");
  static final Set<String> FENCED = Set.of("PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING");

  static final class Failure extends RuntimeException {
    final String reason;

    Failure(String reason, String message) {
      super(reason + ": " + message);
      this.reason = reason;
    }

    static Failure of(StatusRuntimeException thrown) {
      for (var detail : StatusProto.fromThrowable(thrown).getDetailsList()) {
        try {
          return new Failure(detail.unpack(ErrorInfo.class).getReason(), thrown.getMessage());
        } catch (InvalidProtocolBufferException other) { // A detail of another type.
        }
      } // Without a reason it is gRPC's own: what was asked may have happened, or not.
      return new Failure("NETWORK_EXCEPTION", thrown.getMessage());
    }

    /** Throws what an answer has in place of a result. */
    static void check(Errors.Error refused) {
      if (refused.getCodeValue() != 0) {
        throw new Failure(refused.getCode().name().substring("ERROR_CODE_".length()), refused.getMessage());
      }
    }
  }

  ManagedChannel at(String address) {
    return channels.computeIfAbsent(address, unknown -> Grpc.newChannelBuilder(address, InsecureChannelCredentials.create())
        .keepAliveTime(30, SECONDS).keepAliveTimeout(10, SECONDS).build());
  }

  /** Knows who is in charge, until an error says that it is no longer so. */
  ManagedChannel route(String key, Function<ClusterServiceBlockingStub, Instance> find) {
    return routes.computeIfAbsent(key, unknown -> {
      Instance found = find.apply(ClusterServiceGrpc.newBlockingStub(at(bootstrap)).withDeadlineAfter(5, SECONDS));
      return at(found.getHost() + ":" + found.getPort());
    });
  }

  ManagedChannel inCharge(CoordinatorType type, String key) {
    return route(type + key, anyone -> {
      var found = anyone.findCoordinator(FindCoordinatorRequest.newBuilder().setType(type).addKeys(key).build()).getCoordinators(0);
      Failure.check(found.getError());
      return found.getInstance();
    });
  }

  CoordinatorServiceBlockingStub transactions() {
    var channel = inCharge(CoordinatorType.COORDINATOR_TYPE_TRANSACTION, transactionalId);
    return CoordinatorServiceGrpc.newBlockingStub(channel).withDeadlineAfter(5, SECONDS);
  }

  GroupServiceBlockingStub group() {
    return GroupServiceGrpc.newBlockingStub(inCharge(CoordinatorType.COORDINATOR_TYPE_GROUP, groupId)).withDeadlineAfter(5, SECONDS);
  }

  BrokerServiceBlockingStub leaderOf(String topic) {
    return BrokerServiceGrpc.newBlockingStub(route("topic " + topic, anyone -> {
      var known = anyone.metadata(MetadataRequest.newBuilder().addTopics(topic).build());
      Failure.check(known.getTopics(0).getError());
      int leader = known.getTopics(0).getPartitions(0).getLeaderId();
      return known.getInstancesList().stream()
          .filter(each -> each.getRole() == ServiceRole.SERVICE_ROLE_BROKER && each.getInstanceId() == leader).findFirst()
          .orElseThrow(() -> new Failure("BROKER_NOT_AVAILABLE", topic));
    })).withDeadlineAfter(5, SECONDS);
  }

  static <T> T once(Supplier<T> call) {
    try {
      return call.get();
    } catch (StatusRuntimeException thrown) {
      throw Failure.of(thrown);
    }
  }

  /** Makes a call until it is answered with anything but "not now", or the time is up. */
  <T> T again(Supplier<T> call) {
    for (long pauseMs = 50; ; pauseMs = Math.min(2 * pauseMs, 1_000)) {
      try {
        return once(call);
      } catch (Failure failure) {
        if (!RETRIABLE.contains(failure.reason) || end.isExpired()) {
          throw failure;
        }
        routes.clear();
        LockSupport.parkNanos(MILLISECONDS.toNanos(pauseMs));
      }
    }
  }

  /** Writes to all outputs and moves the group, all or nothing; false: it was aborted. */
  boolean commit(InitProducerIdResponse begun, long epoch, FetchPartitionResult read) {
    var ends = EndTxnRequest.newBuilder().setTransactionalId(transactionalId).setProducerId(begun.getProducerId())
        .setProducerEpoch(epoch).setResult(TransactionResult.TRANSACTION_RESULT_COMMIT);
    var offset = OffsetCommitTopic.newBuilder().setTopic(orders)
        .addPartitions(OffsetCommitPartition.newBuilder().setCommittedOffset(read.getNextOffset()));
    var moves = TxnOffsetCommitRequest.newBuilder().setTransactionalId(transactionalId).setProducerId(begun.getProducerId())
        .setProducerEpoch(epoch).setGroupId(groupId).setMemberEpoch(-1).addTopics(offset).build();
    var records = PlainRecords.newBuilder().addAllRecords(read.getRecordsList()).setProducerId(begun.getProducerId())
        .setProducerEpoch(epoch).setBaseSequence(0).setTransactional(true);
    try {
      again(() -> group().txnOffsetCommit(moves));
      ends.getParticipantsBuilder().addGroupIds(groupId);
      for (String topic : outputs) { // The same request each time: so the broker knows a repeat.
        var request = ProduceRequest.newBuilder().setTransactionalId(transactionalId)
            .addPartitions(ProducePartition.newBuilder().setTopic(topic).setRecords(records)).build();
        var written = again(() -> {
          var result = leaderOf(topic).produce(request).getPartitions(0);
          Failure.check(result.getError());
          return TopicPartitions.newBuilder().setTopicId(result.getTopicId()).addPartitions(0);
        });
        ends.getParticipantsBuilder().addTopics(written);
      }
    } catch (Failure failure) {
      if (!ABORTABLE.contains(failure.reason)) {
        throw failure;
      }
      // What was refused may still arrive: it never commits.
      ends.setResult(TransactionResult.TRANSACTION_RESULT_ABORT).clearParticipants();
    }
    return decided(ends.build());
  }

  /** Decides a transaction; false: it was aborted. */
  boolean decided(EndTxnRequest request) {
    var ask = GetTransactionOutcomeRequest.newBuilder().setTransactionalId(transactionalId)
        .setProducerId(request.getProducerId()).setProducerEpoch(request.getProducerEpoch()).build();
    while (true) {
      try {
        once(() -> transactions().endTxn(request));
        return request.getResult() == TransactionResult.TRANSACTION_RESULT_COMMIT;
      } catch (Failure failure) {
        System.err.println("was it committed? " + failure.getMessage());
        var known = again(() -> transactions().getTransactionOutcome(ask));
        if (known.getAbortReason() == AbortReason.ABORT_REASON_FENCED) {
          throw new Failure("PRODUCER_FENCED", "a newer instance has aborted it");
        }
        switch (known.getOutcome()) {
          case TRANSACTION_OUTCOME_COMMITTED -> { return true; }
          case TRANSACTION_OUTCOME_ABORTED -> { return false; }
          default -> {
            if (!RETRIABLE.contains(failure.reason)) {
              throw failure;
            } // Else it is not decided: the same once more.
          }
        }
      }
    }
  }

  void run() {
    var request = InitProducerIdRequest.newBuilder().setTransactionalId(transactionalId).setInitNumber(1)
        .setInstanceId(UUID.randomUUID().toString()).setTransactionTimeoutMs(30_000).setWait(WaitFor.WAIT_FOR_DECIDED).build();
    var begun = again(() -> transactions().initProducerId(request)); // Fences others.
    // Stable: not before every transaction of the instance before this one has ended at the group.
    var ask = FetchOffsetsRequest.newBuilder().setGroupId(groupId).setRequireStable(true)
        .addTopics(OffsetFetchTopic.newBuilder().setTopic(orders).addPartitions(0)).build();
    long offset = again(() -> {
      var found = group().fetchOffsets(ask).getOffsets(0);
      Failure.check(found.getError());
      return Math.max(found.getCommittedOffset(), 0);
    });
    long epoch = begun.getProducerEpoch();
    for (long end = offset + 1; offset < end; ) {
      var fetch = FetchRequest.newBuilder().setIsolationLevel(IsolationLevel.ISOLATION_LEVEL_READ_COMMITTED).setPlainRecords(true)
          .setMinBytes(1).setMaxBytes(4096).setMaxWaitMs(500)
          .addPartitions(FetchPartition.newBuilder().setTopic(orders).setFetchOffset(offset)).build();
      var read = again(() -> {
        var found = leaderOf(orders).fetch(fetch).getPartitions(0);
        Failure.check(found.getError());
        return found;
      });
      for (boolean done = read.getRecordsCount() == 0; !done; epoch++) { // Never an answer's current_epoch: a successor's?
        done = commit(begun, epoch, read); // What was aborted is done once more, in the next transaction.
      }
      offset = read.getNextOffset();
      end = read.getHighWatermark();
    }
  }

  /** {@code java -jar invoices.jar BOOTSTRAP ORDERS INVOICES AUDIT}; status 3: another instance has taken over. */
  public static void main(String... arguments) {
    String orders = arguments[1];
    try {
      new Invoices(arguments[0], orders, List.of(arguments).subList(2, arguments.length), "invoicer-of-" + orders,
          "invoicers-of-" + orders, Deadline.after(2, MINUTES), new HashMap<>(), new HashMap<>()).run();
      System.exit(0); // The connections are still open.
    } catch (Failure failure) {
      System.err.println(failure.getMessage());
      System.exit(FENCED.contains(failure.reason) ? 3 : 1);
    }
  }
}
