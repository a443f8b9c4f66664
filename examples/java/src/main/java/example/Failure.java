package example;

import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.ErrorInfo;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import semel.common.v1.Errors;

/** An error of the protocol, of a whole call or of one partition; docs/errors.md has all. */
final class Failure extends RuntimeException {
  private static final Set<String> RETRIABLE = Set.of(
      "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE",
      "NETWORK_EXCEPTION", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
      "CONCURRENT_TRANSACTIONS", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH", "UNSTABLE_OFFSET_COMMIT",
      "THROTTLING_QUOTA_EXCEEDED", "UNKNOWN_TOPIC_ID");
  private static final Set<String> ABORTABLE = Set.of(
      "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE",
      "BASE_OFFSET_MISMATCH");
  private static final Set<String> FENCED = Set.of("PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING");
  private static final Set<Status.Code> LOST = EnumSet.of(
      Status.Code.UNAVAILABLE, Status.Code.DEADLINE_EXCEEDED, Status.Code.INTERNAL, Status.Code.CANCELLED,
      Status.Code.UNIMPLEMENTED, Status.Code.RESOURCE_EXHAUSTED);

  final String reason;

  Failure(String reason, String message, Map<String, String> details) {
    super(reason + ": " + message + " " + details);
    this.reason = reason;
  }

  /** Send the same again, after a pause; the place may be another one now. */
  boolean isRetriable() {
    return RETRIABLE.contains(reason);
  }

  /** Abort, and do the transaction once more. */
  boolean isAbortable() {
    return ABORTABLE.contains(reason);
  }

  /** Another instance has taken over: this one is done. */
  boolean isFenced() {
    return FENCED.contains(reason);
  }

  /** Throws what an answer has instead of a result. */
  static void check(Errors.Error refusal) {
    if (refusal.getCodeValue() != 0) {
      String reason = refusal.getCode().name().substring("ERROR_CODE_".length());
      throw new Failure(reason, refusal.getMessage(), refusal.getMetadataMap());
    }
  }

  /** Makes one of what a call has thrown. */
  static Failure of(StatusRuntimeException error) {
    var status = StatusProto.fromThrowable(error);
    for (var detail : status.getDetailsList()) {
      if (detail.is(ErrorInfo.class)) {
        try {
          ErrorInfo info = detail.unpack(ErrorInfo.class);
          return new Failure(info.getReason(), status.getMessage(), info.getMetadataMap());
        } catch (InvalidProtocolBufferException damaged) {
          throw new IllegalStateException(damaged);
        }
      }
    }
    // gRPC's own: what was asked may have happened, or not.
    Status.Code code = error.getStatus().getCode();
    return new Failure(LOST.contains(code) ? "NETWORK_EXCEPTION" : code.name(), error.getMessage(), Map.of());
  }
}
