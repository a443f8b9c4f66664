package example;

import java.util.Map;
import java.util.UUID;
import semel.common.v1.ParticipantsOuterClass.Participants;
import semel.common.v1.ParticipantsOuterClass.TransactionResult;
import semel.coordinator.v1.Outcomes.AbortReason;
import semel.coordinator.v1.Outcomes.GetTransactionOutcomeRequest;
import semel.coordinator.v1.Outcomes.TransactionOutcome;
import semel.coordinator.v1.Transactions.EndTxnRequest;
import semel.coordinator.v1.Transactions.InitProducerIdRequest;
import semel.coordinator.v1.Transactions.WaitFor;

/** One instance of a transactional id. (producerId, producerEpoch) is its current transaction. */
final class Producer {
  final String id;
  long producerId;
  long producerEpoch;
  private final Cluster cluster;

  /** Fences the instance before this one. */
  Producer(Cluster cluster, String id) throws InterruptedException {
    this.cluster = cluster;
    this.id = id;
    var request = InitProducerIdRequest.newBuilder().setTransactionalId(id).setInstanceId(UUID.randomUUID().toString())
        .setInitNumber(1).setTransactionTimeoutMs(30_000).setWait(WaitFor.WAIT_FOR_DECIDED).build();
    var began = cluster.again(() -> cluster.transactionsOf(id).initProducerId(request));
    producerId = began.getProducerId();
    producerEpoch = began.getProducerEpoch();
  }

  /** Commits the transaction with what was written, and begins the next one; false: it was aborted. */
  boolean commit(Participants written) throws InterruptedException {
    return end(request(TransactionResult.TRANSACTION_RESULT_COMMIT).setParticipants(written).build());
  }

  /** Aborts the transaction and begins the next one; true: it is committed already. */
  boolean abort() throws InterruptedException {
    return end(request(TransactionResult.TRANSACTION_RESULT_ABORT).build());
  }

  private EndTxnRequest.Builder request(TransactionResult result) {
    return EndTxnRequest.newBuilder().setTransactionalId(id).setProducerId(producerId)
        .setProducerEpoch(producerEpoch).setResult(result);
  }

  private boolean end(EndTxnRequest request) throws InterruptedException {
    var ask = GetTransactionOutcomeRequest.newBuilder().setTransactionalId(id).setProducerId(producerId)
        .setProducerEpoch(producerEpoch).build();
    while (true) {
      Failure failure;
      try {
        producerEpoch = Cluster.once(() -> cluster.transactionsOf(id).endTxn(request)).getProducerEpoch();
        return request.getResult() == TransactionResult.TRANSACTION_RESULT_COMMIT;
      } catch (Failure thrown) {
        failure = thrown;
      }
      System.err.println("was it committed? " + failure.getMessage());
      var known = cluster.again(() -> cluster.transactionsOf(id).getTransactionOutcome(ask));
      if (known.getAbortReason() == AbortReason.ABORT_REASON_FENCED) {
        throw new Failure("PRODUCER_FENCED", "a newer instance has aborted it", Map.of());
      }
      switch (known.getOutcome()) {
        case TRANSACTION_OUTCOME_COMMITTED, TRANSACTION_OUTCOME_ABORTED -> {
          producerEpoch++; // Never the current_epoch, which may be a successor's.
          return known.getOutcome() == TransactionOutcome.TRANSACTION_OUTCOME_COMMITTED;
        }
        default -> {
          if (!failure.isRetriable()) {
            throw failure;
          } // Not decided: the same once more.
        }
      }
    }
  }
}
