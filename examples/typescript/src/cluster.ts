// What any program on Semel needs: who is in charge of what, errors, and when to try again.
import { setTimeout as pause } from "node:timers/promises";
import { Code, ConnectError, createClient, type Client, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.js";
import { BrokerService, IsolationLevel, type FetchPartitionResult } from "../gen/semel/broker/v1/broker_pb.js";
import { ErrorCode, type Error as Refusal } from "../gen/semel/common/v1/errors_pb.js";
import { ClusterService, CoordinatorType, ServiceRole, type Instance } from "../gen/semel/coordinator/v1/cluster_pb.js";
import { CoordinatorService } from "../gen/semel/coordinator/v1/transactions_pb.js";
import { GroupService } from "../gen/semel/group/v1/group_pb.js";

/** An error of the protocol, of a whole call or of one partition; docs/errors.md has all. */
export class Failure extends Error {
  constructor(readonly reason: string, message: string, readonly details: Record<string, string> = {}) {
    super(`${reason}: ${message} ${JSON.stringify(details)}`);
  }
  /** Send the same again, after a pause; the place may be another one now. */
  get retriable() { return RETRIABLE.has(this.reason); }
  /** Abort, and do the transaction once more. */
  get abortable() { return ABORTABLE.has(this.reason); }
  /** Another instance has taken over: this one is done. */
  get fenced() { return FENCED.has(this.reason); }
}

const RETRIABLE = new Set(["UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT",
  "BROKER_NOT_AVAILABLE", "NETWORK_EXCEPTION", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE",
  "NOT_COORDINATOR", "CONCURRENT_TRANSACTIONS", "KAFKA_STORAGE_ERROR", "FENCED_LEADER_EPOCH",
  "UNSTABLE_OFFSET_COMMIT", "THROTTLING_QUOTA_EXCEEDED", "UNKNOWN_TOPIC_ID"]);
const ABORTABLE = new Set(["OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE",
  "TRANSACTION_ABORTABLE", "BASE_OFFSET_MISMATCH"]);
const LOST = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Internal, Code.Aborted, Code.Canceled,
  Code.Unimplemented, Code.ResourceExhausted]);
const FENCED = new Set(["PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING"]);

/** Throws what an answer has instead of a result. */
export function check(refusal: Refusal | undefined) {
  if (refusal && refusal.code !== ErrorCode.UNSPECIFIED) {
    throw new Failure(ErrorCode[refusal.code], refusal.message, refusal.metadata);
  }
}

/** Makes a Failure of what a call throws. */
export function failureOf(thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  const error = ConnectError.from(thrown);
  const info = error.findDetails(ErrorInfoSchema).find((each) => each.domain === "semel");
  if (info) return new Failure(info.reason, error.rawMessage, info.metadata);
  // gRPC's own: what was asked may have happened, or not.
  return new Failure(LOST.has(error.code) ? "NETWORK_EXCEPTION" : Code[error.code], error.rawMessage);
}

export class Cluster {
  private readonly transports = new Map<string, Transport>();
  /** Who is in charge of what, until an error says that it is no longer so. */
  private readonly routes = new Map<string, Transport>();
  constructor(private readonly bootstrap: string, private readonly deadline = Date.now() + 120_000) {}

  /** Makes a call until it is answered with anything but "not now", or the time is up. */
  async again<T>(call: () => Promise<T>): Promise<T> {
    for (let wait = 50; ; wait = Math.min(2 * wait, 1_000)) {
      try {
        return await call();
      } catch (thrown) {
        const failure = failureOf(thrown);
        if (!failure.retriable || Date.now() > this.deadline) throw failure;
        this.routes.clear();
        await pause(wait);
      }
    }
  }

  async transactionsOf(transactionalId: string): Promise<Client<typeof CoordinatorService>> {
    return createClient(CoordinatorService, await this.inCharge(CoordinatorType.TRANSACTION, transactionalId));
  }

  async offsetsOf(groupId: string): Promise<Client<typeof GroupService>> {
    return createClient(GroupService, await this.inCharge(CoordinatorType.GROUP, groupId));
  }

  /** The broker that leads a topic's only partition. */
  async leaderOf(topic: string): Promise<Client<typeof BrokerService>> {
    return createClient(BrokerService, await this.route(`topic ${topic}`, async (any) => {
      const { instances, topics: [found] } = await any.metadata({ topics: [topic] });
      check(found.error);
      return instances.find((each) => each.role === ServiceRole.BROKER && each.instanceId === found.partitions[0].leaderId);
    }));
  }

  /** Reads what is committed; the broker leaves out what is open or aborted. */
  fetch(topic: string, offset: bigint): Promise<FetchPartitionResult> {
    const request = { isolationLevel: IsolationLevel.READ_COMMITTED, plainRecords: true, minBytes: 1, maxBytes: 4096,
      maxWaitMs: 500, partitions: [{ topic, fetchOffset: offset }] };
    return this.again(async () => {
      const { partitions: [read] } = await (await this.leaderOf(topic)).fetch(request);
      check(read.error);
      return read;
    });
  }

  private inCharge(type: CoordinatorType, key: string) {
    return this.route(`${type} ${key}`, async (any) => {
      const { coordinators: [found] } = await any.findCoordinator({ type, keys: [key] });
      check(found.error);
      return found.instance;
    });
  }

  private async route(key: string, find: (any: Client<typeof ClusterService>) => Promise<Instance | undefined>) {
    let transport = this.routes.get(key);
    if (!transport) {
      const found = await find(createClient(ClusterService, this.at(this.bootstrap)));
      if (!found) throw new Failure("BROKER_NOT_AVAILABLE", key);
      this.routes.set(key, (transport = this.at(`${found.host}:${found.port}`)));
    }
    return transport;
  }

  /** The connection to an address: there is one for each. */
  private at(address: string): Transport {
    let transport = this.transports.get(address);
    if (!transport) {
      transport = createGrpcTransport({ baseUrl: `http://${address}`, defaultTimeoutMs: 5_000, pingIntervalMs: 30_000,
        pingTimeoutMs: 10_000 });
      this.transports.set(address, transport);
    }
    return transport;
  }
}
