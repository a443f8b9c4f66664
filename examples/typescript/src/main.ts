// Takes every order of one topic exactly once into others, each topic of one partition; docs/use/clients.md explains every call.
// `node dist/src/main.js BOOTSTRAP ORDERS INVOICES AUDIT`. Status 3: another instance has taken over.
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { BrokerService, IsolationLevel, type FetchPartitionResult } from "../gen/semel/broker/v1/broker_pb.js";
import { TransactionResult } from "../gen/semel/common/v1/participants_pb.js";
import { ClusterService, CoordinatorType, ServiceRole, type Instance } from "../gen/semel/coordinator/v1/cluster_pb.js";
import { TransactionOutcome } from "../gen/semel/coordinator/v1/outcomes_pb.js";
import { CoordinatorService, WaitFor } from "../gen/semel/coordinator/v1/transactions_pb.js";
import { GroupService } from "../gen/semel/group/v1/group_pb.js";

// What to do about an error: every one has it on the wire.
const RETRIABLE = new Set(["RETRIABLE", "REFRESH_RETRIABLE"]);
const LOST = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Internal, Code.Aborted, Code.Canceled, Code.Unimplemented,
  Code.ResourceExhausted, Code.Unknown]);

function classOf(thrown: unknown): string {
  const error = ConnectError.from(thrown);
  const info = error.findDetails(ErrorInfoSchema).find((each) => each.domain === "semel");
  // Without it, it is gRPC's own: what was asked may have happened, or not.
  const lost = thrown instanceof ConnectError && LOST.has(error.code);
  return info?.metadata["error_class"] ?? (lost ? "REFRESH_RETRIABLE" : Code[error.code]);
}

const [bootstrap, orders, ...outputs] = process.argv.slice(2);
const [transactionalId, groupId, deadline] = [`invoicer-of-${orders}`, `invoicers-of-${orders}`, Date.now() + 120_000];
const transports = new Map<string, Transport>(); // By address.
const routes = new Map<string, Transport>(); // Who is in charge of what, until an error says that it is no longer so.

let stopped = false; // By a signal: ends after the transaction in hand. A second one ends at once.
const stop = () => { stopped = true; SIGNALS.forEach((signal) => process.off(signal, stop)); };
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
SIGNALS.forEach((signal) => process.on(signal, stop));

let clusterId = ""; // Once it is known, another cluster at these addresses refuses every call.

const headers: Interceptor = (next) => (request) => {
  request.header.set("semel-errors", "status"); // Those inside an answer, too.
  if (clusterId) request.header.set("semel-cluster-id", clusterId);
  return next(request);
};

function at(address: string): Transport {
  const options = { baseUrl: `http://${address}`, defaultTimeoutMs: 5_000, pingIntervalMs: 30_000, pingTimeoutMs: 10_000,
    interceptors: [headers] };
  if (!transports.has(address)) transports.set(address, createGrpcTransport(options));
  return transports.get(address)!;
}

async function route(key: string, find: () => Promise<Instance | undefined>): Promise<Transport> {
  const found = routes.has(key) ? undefined : await find();
  if (found) routes.set(key, at(`${found.host}:${found.port}`));
  if (!routes.has(key)) throw new ConnectError(`nobody is in charge of ${key}`, Code.Unavailable);
  return routes.get(key)!;
}

const anyone = createClient(ClusterService, at(bootstrap));
const inCharge = (type: CoordinatorType, key: string) => route(`${type} ${key}`, async () =>
  (await anyone.findCoordinator({ type, keys: [key] })).coordinators[0].instance);
const leaderOf = async (topic: string) => createClient(BrokerService, await route(`topic ${topic}`, async () => {
  // The controller is certain: of a topic that does not exist, this ends the program at once.
  const { instances, topics: [known] } = await anyone.metadata({ topics: [topic], fromController: true });
  const { leaderId } = known.partitions[0];
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
      if (!RETRIABLE.has(classOf(thrown)) || Date.now() > deadline) throw thrown;
      routes.clear();
      await pause(wait);
    }
  }
}

type Transaction = { transactionalId: string; producerId: bigint; producerEpoch: bigint };
/** Writes to all outputs and moves the group, all or nothing; false: it was aborted. */
async function commit(transaction: Transaction, read: FetchPartitionResult): Promise<boolean> {
  const participants = { topics: [] as { topic: string; partitions: number[] }[], groupIds: [groupId] };
  const offset = { ...transaction, groupId, memberEpoch: -1n,
    topics: [{ topic: orders, partitions: [{ partition: 0, committedOffset: read.nextOffset }] }] };
  try {
    await again(async () => (await group()).txnOffsetCommit(offset));
    for (const topic of outputs) { // A first batch has sequence 0. The same request each time: so the broker knows a repeat.
      const request = { transactionalId, partitions: [{ topic, records: { ...transaction, records: read.records,
        baseSequence: 0, transactional: true } }] };
      participants.topics.push({ topic, partitions: [0] }); // A send without an answer may still arrive: an abort names its topic.
      await again(async () => (await leaderOf(topic)).produce(request));
    }
  } catch (thrown) {
    if (classOf(thrown) !== "ABORTABLE_TRANSACTION") throw thrown;
    return end(transaction, TransactionResult.ABORT, participants); // What was refused may still arrive: it never commits.
  }
  return end(transaction, TransactionResult.COMMIT, participants);
}

/** Decides a transaction; false: it was aborted. */
async function end(transaction: Transaction, result: TransactionResult, participants: object): Promise<boolean> {
  try {
    await again(async () => (await coordinator()).endTxn({ ...transaction, result, participants }));
    return result === TransactionResult.COMMIT;
  } catch (thrown) {
    console.error(`was it committed? ${thrown}`);
    const { outcome } = await again(async () => (await coordinator()).getTransactionOutcome(transaction));
    if (outcome === TransactionOutcome.COMMITTED) return true;
    if (outcome === TransactionOutcome.ABORTED && classOf(thrown) === "ABORTABLE_TRANSACTION") return false;
    throw thrown; // If it was aborted, then by a newer instance.
  }
}

async function run() {
  const request = { transactionalId, instanceId: randomUUID(), initNumber: 1n, transactionTimeoutMs: 30_000, wait: WaitFor.DECIDED };
  ({ clusterId } = await again(() => anyone.metadata({})));
  let { producerId, producerEpoch } = await again(async () => (await coordinator()).initProducerId(request)); // Fences others.
  // Stable: not before every transaction of the instance before this one has ended at the group.
  const ask = { groupId, requireStable: true, topics: [{ topic: orders, partitions: [0] }] };
  const { committedOffset } = await again(async () => (await (await group()).fetchOffsets(ask)).offsets[0]);
  let offset = committedOffset < 0n ? 0n : committedOffset;
  for (let end = offset + 1n; offset < end && !stopped; ) {
    const fetch = { isolationLevel: IsolationLevel.READ_COMMITTED, plainRecords: true, minBytes: 1, maxRecords: 2,
      maxWaitMs: 500, partitions: [{ topic: orders, fetchOffset: offset }] };
    const read = await again(async () => (await (await leaderOf(orders)).fetch(fetch)).partitions[0]);
    for (let done = read.records.length === 0; !done; ) { // What was aborted is done once more, in the next transaction:
      done = await commit({ transactionalId, producerId, producerEpoch }, read);
      producerEpoch += 1n; // never an answer's currentEpoch, which may be a successor's.
    }
    [offset, end] = [read.nextOffset, read.highWatermark];
  }
}

await run().then(() => process.exit(0), (thrown) => { // The connections are still open.
  console.error(`${thrown}`);
  process.exit(classOf(thrown) === "APPLICATION_RECOVERABLE" ? 3 : 1);
});
