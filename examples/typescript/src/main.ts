// Takes every order of one topic exactly once into others, each topic of one partition; docs/clients.md explains every call.
// `node dist/src/main.js BOOTSTRAP ORDERS INVOICES AUDIT`. Status 3: another instance has taken over.
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { BrokerService, IsolationLevel, type FetchPartitionResult } from "../gen/semel/broker/v1/broker_pb.js";
import { ErrorCode, type Error as Refusal } from "../gen/semel/common/v1/errors_pb.js";
import { TransactionResult } from "../gen/semel/common/v1/participants_pb.js";
import { ClusterService, CoordinatorType, ServiceRole, type Instance } from "../gen/semel/coordinator/v1/cluster_pb.js";
import { AbortReason, TransactionOutcome } from "../gen/semel/coordinator/v1/outcomes_pb.js";
import { CoordinatorService, WaitFor } from "../gen/semel/coordinator/v1/transactions_pb.js";
import { GroupService } from "../gen/semel/group/v1/group_pb.js";

// What to do about an error, by its reason: the same again; or abort, and do the transaction once more; or end.
const RETRIABLE = new Set(["UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE",
  "NETWORK_EXCEPTION", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "CONCURRENT_TRANSACTIONS",
  "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH", "UNSTABLE_OFFSET_COMMIT", "THROTTLING_QUOTA_EXCEEDED", "UNKNOWN_TOPIC_ID"]);
const ABORTABLE = new Set(["OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE",
  "BASE_OFFSET_MISMATCH"]);
const FENCED = new Set(["PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING"]);
const LOST = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Internal, Code.Aborted, Code.Canceled, Code.Unimplemented,
  Code.ResourceExhausted]);

class Failure extends Error {
  constructor(readonly reason: string, message: string) {
    super(`${reason}: ${message}`);
  }
  static of(thrown: unknown): Failure {
    if (thrown instanceof Failure) return thrown;
    const error = ConnectError.from(thrown);
    const info = error.findDetails(ErrorInfoSchema).find((each) => each.domain === "semel");
    // Without a reason it is gRPC's own: what was asked may have happened, or not.
    return new Failure(info?.reason ?? (LOST.has(error.code) ? "NETWORK_EXCEPTION" : Code[error.code]), error.rawMessage);
  }
}

/** Returns what one partition, group or id has in an answer, or throws what it has instead of a result. */
function checked<T extends { error?: Refusal }>(result: T): T {
  if (result.error?.code) throw new Failure(ErrorCode[result.error.code], result.error.message);
  return result;
}

const [bootstrap, orders, ...outputs] = process.argv.slice(2);
const [transactionalId, groupId, deadline] = [`invoicer-of-${orders}`, `invoicers-of-${orders}`, Date.now() + 120_000];
const transports = new Map<string, Transport>(); // By address.
const routes = new Map<string, Transport>(); // Who is in charge of what, until an error says that it is no longer so.

function at(address: string): Transport {
  const options = { baseUrl: `http://${address}`, defaultTimeoutMs: 5_000, pingIntervalMs: 30_000, pingTimeoutMs: 10_000 };
  if (!transports.has(address)) transports.set(address, createGrpcTransport(options));
  return transports.get(address)!;
}

async function route(key: string, find: () => Promise<Instance | undefined>): Promise<Transport> {
  const found = routes.has(key) ? undefined : await find();
  if (found) routes.set(key, at(`${found.host}:${found.port}`));
  if (!routes.has(key)) throw new Failure("BROKER_NOT_AVAILABLE", key);
  return routes.get(key)!;
}

const anyone = createClient(ClusterService, at(bootstrap));
const inCharge = (type: CoordinatorType, key: string) => route(`${type} ${key}`, async () =>
  checked((await anyone.findCoordinator({ type, keys: [key] })).coordinators[0]).instance);
const leaderOf = async (topic: string) => createClient(BrokerService, await route(`topic ${topic}`, async () => {
  const { instances, topics: [known] } = await anyone.metadata({ topics: [topic] });
  const { leaderId } = checked(known).partitions[0];
  return instances.find((each) => each.role === ServiceRole.BROKER && each.instanceId === leaderId);
}));
const coordinator = async () => createClient(CoordinatorService, await inCharge(CoordinatorType.TRANSACTION, transactionalId));
const group = async () => createClient(GroupService, await inCharge(CoordinatorType.GROUP, groupId));

/** Makes a call until it is answered with anything but "not now", or the time is up. */
async function again<T>(call: () => Promise<T>): Promise<T> {
  for (let wait = 50; ; wait = Math.min(2 * wait, 1_000)) {
    try {
      return await call();
    } catch (thrown) {
      const failure = Failure.of(thrown);
      if (!RETRIABLE.has(failure.reason) || Date.now() > deadline) throw failure;
      routes.clear();
      await pause(wait);
    }
  }
}

type Transaction = { transactionalId: string; producerId: bigint; producerEpoch: bigint };
/** Writes to all outputs and moves the group, all or nothing; false: it was aborted. */
async function commit(transaction: Transaction, read: FetchPartitionResult): Promise<boolean> {
  const participants = { topics: [] as { topicId: string; partitions: number[] }[], groupIds: [groupId] };
  const offset = { ...transaction, groupId, memberEpoch: -1n,
    topics: [{ topic: orders, partitions: [{ partition: 0, committedOffset: read.nextOffset }] }] };
  try {
    await again(async () => (await group()).txnOffsetCommit(offset));
    for (const topic of outputs) { // A first batch has sequence 0. The same request each time: so the broker knows a repeat.
      const request = { transactionalId, partitions: [{ topic, records: { ...transaction, records: read.records,
        baseSequence: 0, transactional: true } }] };
      const { topicId } = await again(async () => checked((await (await leaderOf(topic)).produce(request)).partitions[0]));
      participants.topics.push({ topicId, partitions: [0] });
    }
  } catch (thrown) {
    if (!ABORTABLE.has(Failure.of(thrown).reason)) throw thrown;
    return end(transaction, TransactionResult.ABORT); // What was refused may still arrive: it never commits.
  }
  return end(transaction, TransactionResult.COMMIT, participants);
}

/** Decides a transaction; false: it was aborted. */
async function end(transaction: Transaction, result: TransactionResult, participants?: object): Promise<boolean> {
  for (;;) {
    try {
      await (await coordinator()).endTxn({ ...transaction, result, participants });
      return result === TransactionResult.COMMIT;
    } catch (thrown) {
      const { reason, message } = Failure.of(thrown);
      console.error(`was it committed? ${message}`);
      const { outcome, abortReason } = await again(async () => (await coordinator()).getTransactionOutcome(transaction));
      if (abortReason === AbortReason.FENCED) throw new Failure("PRODUCER_FENCED", "a newer instance has aborted it");
      if (outcome === TransactionOutcome.COMMITTED) return true;
      if (outcome === TransactionOutcome.ABORTED) return false;
      if (!RETRIABLE.has(reason)) throw thrown; // Else it is not decided: the same once more.
    }
  }
}

async function run() {
  const request = { transactionalId, instanceId: randomUUID(), initNumber: 1n, transactionTimeoutMs: 30_000, wait: WaitFor.DECIDED };
  let { producerId, producerEpoch } = await again(async () => (await coordinator()).initProducerId(request)); // Fences others.
  // Stable: not before every transaction of the instance before this one has ended at the group.
  const ask = { groupId, requireStable: true, topics: [{ topic: orders, partitions: [0] }] };
  const { committedOffset } = await again(async () => checked((await (await group()).fetchOffsets(ask)).offsets[0]));
  let offset = committedOffset < 0n ? 0n : committedOffset;
  for (let end = offset + 1n; offset < end; ) {
    const fetch = { isolationLevel: IsolationLevel.READ_COMMITTED, plainRecords: true, minBytes: 1, maxBytes: 4096,
      maxWaitMs: 500, partitions: [{ topic: orders, fetchOffset: offset }] };
    const read = await again(async () => checked((await (await leaderOf(orders)).fetch(fetch)).partitions[0]));
    for (let done = read.records.length === 0; !done; ) { // What was aborted is done once more, in the next transaction:
      done = await commit({ transactionalId, producerId, producerEpoch }, read);
      producerEpoch += 1n; // never an answer's currentEpoch, which may be a successor's.
    }
    [offset, end] = [read.nextOffset, read.highWatermark];
  }
}

await run().then(() => process.exit(0), (thrown) => { // The connections are still open.
  console.error(Failure.of(thrown).message);
  process.exit(FENCED.has(Failure.of(thrown).reason) ? 3 : 1);
});
