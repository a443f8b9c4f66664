package example;

import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import semel.broker.v1.BrokerServiceGrpc;
import semel.broker.v1.BrokerServiceGrpc.BrokerServiceBlockingStub;
import semel.coordinator.v1.Cluster.CoordinatorType;
import semel.coordinator.v1.Cluster.FindCoordinatorRequest;
import semel.coordinator.v1.Cluster.Instance;
import semel.coordinator.v1.Cluster.MetadataRequest;
import semel.coordinator.v1.Cluster.ServiceRole;
import semel.coordinator.v1.ClusterServiceGrpc;
import semel.coordinator.v1.ClusterServiceGrpc.ClusterServiceBlockingStub;
import semel.coordinator.v1.CoordinatorServiceGrpc;
import semel.coordinator.v1.CoordinatorServiceGrpc.CoordinatorServiceBlockingStub;
import semel.group.v1.GroupServiceGrpc;
import semel.group.v1.GroupServiceGrpc.GroupServiceBlockingStub;

/** Knows who is in charge of what, and when to try again. For one thread. */
final class Cluster implements AutoCloseable {
  private static final int CALL_TIMEOUT_S = 5;

  private final String bootstrap;
  private final Instant end = Instant.now().plus(Duration.ofMinutes(2));
  /** There is one channel for each address. */
  private final Map<String, ManagedChannel> channels = new HashMap<>();
  /** Who is in charge of what, until an error says that it is no longer so. */
  private final Map<String, ManagedChannel> routes = new HashMap<>();

  Cluster(String bootstrap) {
    this.bootstrap = bootstrap;
  }

  /** Makes a call until it is answered with anything but "not now", or the time is up. */
  <T> T again(Supplier<T> call) throws InterruptedException {
    for (long pauseMs = 50; ; pauseMs = Math.min(2 * pauseMs, 1_000)) {
      try {
        return once(call);
      } catch (Failure failure) {
        if (!failure.isRetriable() || Instant.now().isAfter(end)) {
          throw failure;
        }
        routes.clear();
        Thread.sleep(pauseMs);
      }
    }
  }

  /** Makes a call; throws Failure. */
  static <T> T once(Supplier<T> call) {
    try {
      return call.get();
    } catch (StatusRuntimeException error) {
      throw Failure.of(error);
    }
  }

  CoordinatorServiceBlockingStub transactionsOf(String transactionalId) {
    var channel = inCharge(CoordinatorType.COORDINATOR_TYPE_TRANSACTION, transactionalId);
    return CoordinatorServiceGrpc.newBlockingStub(channel).withDeadlineAfter(CALL_TIMEOUT_S, TimeUnit.SECONDS);
  }

  GroupServiceBlockingStub offsetsOf(String groupId) {
    var channel = inCharge(CoordinatorType.COORDINATOR_TYPE_GROUP, groupId);
    return GroupServiceGrpc.newBlockingStub(channel).withDeadlineAfter(CALL_TIMEOUT_S, TimeUnit.SECONDS);
  }

  /** Returns the broker that leads a topic's only partition. */
  BrokerServiceBlockingStub leaderOf(String topic) {
    var channel = route("topic " + topic, any -> {
      var answer = any.metadata(MetadataRequest.newBuilder().addTopics(topic).build());
      var found = answer.getTopics(0);
      Failure.check(found.getError());
      return answer.getInstancesList().stream()
          .filter(each -> each.getRole() == ServiceRole.SERVICE_ROLE_BROKER)
          .filter(each -> each.getInstanceId() == found.getPartitions(0).getLeaderId())
          .findFirst()
          .orElseThrow(() -> new Failure("BROKER_NOT_AVAILABLE", topic, Map.of()));
    });
    return BrokerServiceGrpc.newBlockingStub(channel).withDeadlineAfter(CALL_TIMEOUT_S, TimeUnit.SECONDS);
  }

  private ManagedChannel inCharge(CoordinatorType type, String key) {
    return route(type + " " + key, any -> {
      var found = any.findCoordinator(FindCoordinatorRequest.newBuilder().setType(type).addKeys(key).build());
      Failure.check(found.getCoordinators(0).getError());
      return found.getCoordinators(0).getInstance();
    });
  }

  private ManagedChannel route(String key, Function<ClusterServiceBlockingStub, Instance> find) {
    return routes.computeIfAbsent(key, unknown -> {
      var any = ClusterServiceGrpc.newBlockingStub(at(bootstrap));
      Instance found = find.apply(any.withDeadlineAfter(CALL_TIMEOUT_S, TimeUnit.SECONDS));
      return at(found.getHost() + ":" + found.getPort());
    });
  }

  private ManagedChannel at(String address) {
    return channels.computeIfAbsent(address, unknown ->
        Grpc.newChannelBuilder(address, InsecureChannelCredentials.create())
            .keepAliveTime(30, TimeUnit.SECONDS)
            .keepAliveTimeout(10, TimeUnit.SECONDS)
            .build());
  }

  @Override
  public void close() {
    channels.values().forEach(ManagedChannel::shutdownNow);
  }
}
