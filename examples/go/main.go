// Takes every order of one topic exactly once into others, each topic of one partition; docs/clients.md explains every call.
// `go run . BOOTSTRAP ORDERS INVOICES AUDIT`. Status 3: another instance has taken over.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	broker "example.com/semel-client/gen/semel/broker/v1"
	common "example.com/semel-client/gen/semel/common/v1"
	coordinator "example.com/semel-client/gen/semel/coordinator/v1"
	group "example.com/semel-client/gen/semel/group/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// What to do about an error, by its reason: the same again; or abort, and do the transaction once more; or end.
var retriable = strings.Fields(`UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT BROKER_NOT_AVAILABLE
	NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR CONCURRENT_TRANSACTIONS
	KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH UNSTABLE_OFFSET_COMMIT THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID`)
var abortable = strings.Fields(`OUT_OF_ORDER_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH INVALID_TXN_STATE TRANSACTION_ABORTABLE
	BASE_OFFSET_MISMATCH`)
var fenced = strings.Fields(`PRODUCER_FENCED INVALID_PRODUCER_ID_MAPPING`)

func is(err error, reasons []string) bool {
	reason := "NETWORK_EXCEPTION" // Without a reason it is gRPC's own: what was asked may have happened, or not.
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "semel" {
			reason = info.Reason
		}
	}
	return err != nil && slices.Contains(reasons, reason)
}

// must returns an answer, or ends the program.
func must[T any](answer T, err error) T {
	if is(err, fenced) {
		log.Print(err)
		os.Exit(3)
	} else if err != nil {
		log.Fatal(err)
	}
	return answer
}

var bootstrap, orders, outputs = os.Args[1], os.Args[2], os.Args[3:]
var transactionalID, groupID = "invoicer-of-" + orders, "invoicers-of-" + orders
var connections = map[string]*grpc.ClientConn{} // By address.
var routes = map[place]string{}                 // Addresses of who is in charge, until an error says that they are old.

// place is a connection to who is in charge of a transactional id, a group or (of type 0) a topic; with no name, to any coordinator.
// Of grpc.ClientConnInterface it has only unary calls.
type place struct {
	grpc.ClientConnInterface
	of   coordinator.CoordinatorType
	name string
}

// Invoke makes a call until it is answered with anything but "not now", or the time is up.
func (p place) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := p.connection(ctx).Invoke(ctx, method, request, answer, options...)
		if err == nil {
			err = refused(answer)
		}
		if !is(err, retriable) || ctx.Err() != nil || method == coordinator.CoordinatorService_EndTxn_FullMethodName {
			return err // Before a commit is sent again, its outcome is asked for.
		}
		clear(routes)
		time.Sleep(pause)
	}
}

func (p place) connection(ctx context.Context) *grpc.ClientConn {
	if p.name == "" {
		routes[p] = bootstrap
	} else if anyone := coordinator.NewClusterServiceClient(place{}); routes[p] == "" && p.of != 0 {
		found := must(anyone.FindCoordinator(ctx, &coordinator.FindCoordinatorRequest{Type: p.of, Keys: []string{p.name}})).Coordinators[0]
		routes[p] = fmt.Sprint(found.Instance.Host, ":", found.Instance.Port)
	} else if routes[p] == "" {
		known := must(anyone.Metadata(ctx, &coordinator.MetadataRequest{Topics: []string{p.name}}))
		for _, each := range known.Instances {
			// A leader that is not there has no address: the call fails, and is made again.
			if each.Role == coordinator.ServiceRole_SERVICE_ROLE_BROKER && each.InstanceId == known.Topics[0].Partitions[0].LeaderId {
				routes[p] = fmt.Sprint(each.Host, ":", each.Port)
			}
		}
	}
	if address := routes[p]; connections[address] == nil {
		connections[address] = must(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "timeout": "5s"}]}`),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second})))
	}
	return connections[routes[p]]
}

// refused makes an error of the one that an answer has for its only partition, group or id.
func refused(answer any) error {
	var refusal *common.Error
	switch answer := answer.(type) {
	case *coordinator.FindCoordinatorResponse:
		refusal = answer.Coordinators[0].Error
	case *coordinator.MetadataResponse:
		refusal = answer.Topics[0].Error
	case *group.FetchOffsetsResponse:
		refusal = answer.Offsets[0].Error
	case *broker.FetchResponse:
		refusal = answer.Partitions[0].Error
	case *broker.ProduceResponse:
		refusal = answer.Partitions[0].Error
	}
	if refusal == nil {
		return nil
	}
	info := &errdetails.ErrorInfo{Reason: strings.TrimPrefix(refusal.Code.String(), "ERROR_CODE_"), Domain: "semel"}
	failed, _ := status.New(codes.Aborted, info.Reason+": "+refusal.Message).WithDetails(info)
	return failed.Err()
}

var transactions = coordinator.NewCoordinatorServiceClient(
	place{of: coordinator.CoordinatorType_COORDINATOR_TYPE_TRANSACTION, name: transactionalID})
var offsets = group.NewGroupServiceClient(place{of: coordinator.CoordinatorType_COORDINATOR_TYPE_GROUP, name: groupID})

func leaderOf(topic string) broker.BrokerServiceClient {
	return broker.NewBrokerServiceClient(place{name: topic})
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	begun := must(transactions.InitProducerId(ctx, &coordinator.InitProducerIdRequest{TransactionalId: &transactionalID,
		InstanceId: rand.Text(), InitNumber: 1, TransactionTimeoutMs: 30_000, Wait: coordinator.WaitFor_WAIT_FOR_DECIDED}))
	// Stable: not before every transaction of the instance before this one has ended at the group.
	stood := must(offsets.FetchOffsets(ctx, &group.FetchOffsetsRequest{GroupId: groupID, RequireStable: true,
		Topics: []*group.OffsetFetchTopic{{Topic: orders, Partitions: []int32{0}}}}))
	offset := max(stood.Offsets[0].CommittedOffset, 0)
	for end := offset + 1; offset < end; {
		read := must(leaderOf(orders).Fetch(ctx, &broker.FetchRequest{PlainRecords: true, MinBytes: 1, MaxBytes: 4096, MaxWaitMs: 500,
			IsolationLevel: broker.IsolationLevel_ISOLATION_LEVEL_READ_COMMITTED,
			Partitions:     []*broker.FetchPartition{{Topic: orders, FetchOffset: offset}}})).Partitions[0]
		for done := len(read.Records) == 0; !done; begun.ProducerEpoch++ { // Never an answer's CurrentEpoch: it may be a successor's.
			done = commit(ctx, begun, read) // What was aborted is done once more, in the next transaction.
		}
		offset, end = read.NextOffset, read.HighWatermark
	}
}

// commit writes to all outputs and moves the group, all or nothing; false: it was aborted.
func commit(ctx context.Context, begun *coordinator.InitProducerIdResponse, read *broker.FetchPartitionResult) bool {
	end := &coordinator.EndTxnRequest{TransactionalId: transactionalID, ProducerId: begun.ProducerId, ProducerEpoch: begun.ProducerEpoch,
		Result: common.TransactionResult_TRANSACTION_RESULT_COMMIT, Participants: &common.Participants{GroupIds: []string{groupID}}}
	_, err := offsets.TxnOffsetCommit(ctx, &group.TxnOffsetCommitRequest{TransactionalId: transactionalID, GroupId: groupID,
		ProducerId: begun.ProducerId, ProducerEpoch: begun.ProducerEpoch, MemberEpoch: -1, Topics: []*group.OffsetCommitTopic{{
			Topic: orders, Partitions: []*group.OffsetCommitPartition{{CommittedOffset: read.NextOffset}}}}})
	for n := 0; n < len(outputs) && err == nil; n++ { // A first batch has sequence 0. A repeat is the same: so the broker knows it.
		var written *broker.ProduceResponse
		written, err = leaderOf(outputs[n]).Produce(ctx, &broker.ProduceRequest{TransactionalId: transactionalID,
			Partitions: []*broker.ProducePartition{{Topic: outputs[n], Records: &broker.PlainRecords{Records: read.Records,
				ProducerId: begun.ProducerId, ProducerEpoch: begun.ProducerEpoch, Transactional: true}}}})
		for _, each := range written.GetPartitions() {
			end.Participants.Topics = append(end.Participants.Topics, &common.TopicPartitions{TopicId: each.TopicId, Partitions: []int32{0}})
		}
	}
	if is(err, abortable) { // What was refused may still arrive: it never commits.
		end.Result, end.Participants, err = common.TransactionResult_TRANSACTION_RESULT_ABORT, nil, nil
	}
	must(end, err)
	for {
		if _, err = transactions.EndTxn(ctx, end); err == nil {
			return end.Result == common.TransactionResult_TRANSACTION_RESULT_COMMIT
		}
		log.Print("was it committed? ", err)
		known := must(transactions.GetTransactionOutcome(ctx, &coordinator.GetTransactionOutcomeRequest{
			TransactionalId: transactionalID, ProducerId: begun.ProducerId, ProducerEpoch: begun.ProducerEpoch}))
		if known.AbortReason == coordinator.AbortReason_ABORT_REASON_FENCED { // By a newer instance.
			os.Exit(3)
		}
		switch known.Outcome {
		case coordinator.TransactionOutcome_TRANSACTION_OUTCOME_COMMITTED:
			return true
		case coordinator.TransactionOutcome_TRANSACTION_OUTCOME_ABORTED:
			return false
		}
		if !is(err, retriable) {
			must(end, err)
		} // Else it is not decided: the same once more.
	}
}
