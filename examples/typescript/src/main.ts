// Takes every order of one topic exactly once into two others, each topic of one partition:
// `node dist/src/main.js BOOTSTRAP ORDERS INVOICES AUDIT`. Status 3: another instance has taken over.
import { randomUUID } from "node:crypto";
import type { FetchPartitionResult } from "../gen/semel/broker/v1/broker_pb.js";
import { TransactionResult } from "../gen/semel/common/v1/participants_pb.js";
import { AbortReason, TransactionOutcome } from "../gen/semel/coordinator/v1/outcomes_pb.js";
import { WaitFor } from "../gen/semel/coordinator/v1/transactions_pb.js";
import { check, Cluster, Failure, failureOf } from "./cluster.js";

type Written = { topics: { topicId: string; partitions: number[] }[]; groupIds: string[] };

/** One instance of a transactional id. Its current transaction is (producerId, producerEpoch). */
class Invoicer {
  private producerId = 0n;
  private producerEpoch = 0n;

  constructor(private readonly cluster: Cluster, private readonly orders: string, private readonly outputs: string[],
    private readonly transactionalId = `invoicer-of-${orders}`, private readonly groupId = `invoicers-of-${orders}`) {}

  async run() {
    let offset = await this.begin();
    for (let end = offset + 1n; offset < end; ) {
      const read = await this.cluster.fetch(this.orders, offset);
      if (read.records.length > 0) {
        while (!(await this.transaction(read))); // What was aborted is done once more.
      }
      [offset, end] = [read.nextOffset, read.highWatermark];
    }
  }

  /** Fences the instance before this one, and returns where the group stands. */
  private async begin(): Promise<bigint> {
    const request = { transactionalId: this.transactionalId, instanceId: randomUUID(), initNumber: 1n,
      transactionTimeoutMs: 30_000, wait: WaitFor.DECIDED };
    const began = await this.cluster.again(async () => (await this.coordinator()).initProducerId(request));
    [this.producerId, this.producerEpoch] = [began.producerId, began.producerEpoch];
    return this.cluster.again(async () => {
      // Stable: not before every transaction of the instance before this one has ended at the group.
      const { offsets: [found] } = await (await this.cluster.offsetsOf(this.groupId)).fetchOffsets({
        groupId: this.groupId, requireStable: true, topics: [{ topic: this.orders, partitions: [0] }] });
      check(found.error);
      return found.committedOffset < 0n ? 0n : found.committedOffset;
    });
  }

  /** Writes to all outputs and moves the group, all or nothing; false: it was aborted. */
  private async transaction(read: FetchPartitionResult): Promise<boolean> {
    const written: Written = { topics: [], groupIds: [this.groupId] };
    try {
      await this.commitOffset(read.nextOffset);
      for (const topic of this.outputs) written.topics.push(await this.produce(topic, read));
    } catch (thrown) {
      const failure = failureOf(thrown);
      if (!failure.abortable) throw failure;
      console.error(`aborting: ${failure.message}`); // What was refused may still arrive: such a transaction never commits.
      return this.end(TransactionResult.ABORT);
    }
    return this.end(TransactionResult.COMMIT, written);
  }

  private async produce(topic: string, read: FetchPartitionResult) {
    // A transaction's first batch in a partition has sequence 0; the next one has as many more as this has records.
    const request = { transactionalId: this.transactionalId, partitions: [{ topic, records: { records: read.records,
      producerId: this.producerId, producerEpoch: this.producerEpoch, baseSequence: 0, transactional: true } }] };
    return this.cluster.again(async () => { // The same request each time: so the broker knows a repeat.
      const { partitions: [result] } = await (await this.cluster.leaderOf(topic)).produce(request);
      check(result.error);
      return { topicId: result.topicId, partitions: [0] };
    });
  }

  private async commitOffset(committedOffset: bigint) {
    const request = { transactionalId: this.transactionalId, producerId: this.producerId, producerEpoch: this.producerEpoch,
      groupId: this.groupId, memberEpoch: -1n, topics: [{ topic: this.orders, partitions: [{ partition: 0, committedOffset }] }] };
    await this.cluster.again(async () => (await this.cluster.offsetsOf(this.groupId)).txnOffsetCommit(request));
  }

  /** Decides the transaction and begins the next one; false: this one was aborted. */
  private async end(result: TransactionResult, participants?: Written): Promise<boolean> {
    const transaction = { transactionalId: this.transactionalId, producerId: this.producerId, producerEpoch: this.producerEpoch };
    for (;;) {
      let failure: Failure;
      try {
        const ended = await (await this.coordinator()).endTxn({ ...transaction, result, participants });
        this.producerEpoch = ended.producerEpoch;
        return result === TransactionResult.COMMIT;
      } catch (thrown) {
        failure = failureOf(thrown);
      }
      console.error(`was it committed? ${failure.message}`);
      const { outcome, abortReason } = await this.cluster.again(async () =>
        (await this.coordinator()).getTransactionOutcome(transaction));
      if (abortReason === AbortReason.FENCED) throw new Failure("PRODUCER_FENCED", "a newer instance has aborted it");
      if (outcome === TransactionOutcome.COMMITTED || outcome === TransactionOutcome.ABORTED) {
        this.producerEpoch += 1n; // Never currentEpoch, which may be a successor's.
        return outcome === TransactionOutcome.COMMITTED;
      }
      if (!failure.retriable) throw failure;
      // Not decided: the same once more.
    }
  }

  private coordinator() {
    return this.cluster.transactionsOf(this.transactionalId);
  }
}

const [bootstrap, orders, ...outputs] = process.argv.slice(2);
try {
  await new Invoicer(new Cluster(bootstrap), orders, outputs).run();
  process.exit(0); // The connections are still open.
} catch (error) {
  console.error(failureOf(error).message);
  process.exit(failureOf(error).fenced ? 3 : 1);
}
