// Takes every order of one topic exactly once into others, each topic of one partition; docs/use/clients.md explains every call.
// `go run . BOOTSTRAP ORDERS INVOICES AUDIT`. Status 3: another instance has taken over.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	broker "example.com/semel-client/gen/semel/broker/v1"
	common "example.com/semel-client/gen/semel/common/v1"
	coordinator "example.com/semel-client/gen/semel/coordinator/v1"
	group "example.com/semel-client/gen/semel/group/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// classOf returns what to do about an error: every one has it on the wire.
func classOf(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "semel" {
			return info.Metadata["error_class"]
		}
	}
	return "REFRESH_RETRIABLE" // It is gRPC's own: what was asked may have happened, or not.
}

// must returns an answer, or ends the program.
func must[T any](answer T, err error) T {
	if err != nil {
		log.Print(err)
		os.Exit(max(1, map[string]int{"APPLICATION_RECOVERABLE": 3}[classOf(err)]))
	}
	return answer
}

var bootstrap, orders, outputs = os.Args[1], os.Args[2], os.Args[3:]
var transactionalID, groupID = "invoicer-of-" + orders, "invoicers-of-" + orders

// place is a connection to who is in charge of something, who is asked for again when an error says so.
type place struct {
	*grpc.ClientConn
	find func(context.Context) (address string)
}

// Invoke makes a call until it is answered with anything but "not now".
func (p *place) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		if p.ClientConn == nil {
			p.ClientConn = must(grpc.NewClient(p.find(ctx), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{}], "timeout": "5s"}]}`),
				grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second})))
		}
		err := p.ClientConn.Invoke(ctx, method, request, answer, options...)
		if class := classOf(err); err == nil || class != "RETRIABLE" && class != "REFRESH_RETRIABLE" {
			return err
		}
		p.Close() // Only REFRESH_RETRIABLE says that it may be another one; to ask once more costs little.
		p.ClientConn = nil
		time.Sleep(pause)
	}
}

var anyone = coordinator.NewClusterServiceClient(&place{find: func(context.Context) string { return bootstrap }})
var transactions = coordinator.NewCoordinatorServiceClient(coordinatorOf(coordinator.CoordinatorType_COORDINATOR_TYPE_TRANSACTION, transactionalID))
var offsets = group.NewGroupServiceClient(coordinatorOf(coordinator.CoordinatorType_COORDINATOR_TYPE_GROUP, groupID))
var leaders = map[string]broker.BrokerServiceClient{} // By topic.

func coordinatorOf(of coordinator.CoordinatorType, name string) *place {
	return &place{find: func(ctx context.Context) string {
		found := must(anyone.FindCoordinator(ctx, &coordinator.FindCoordinatorRequest{Type: of, Keys: []string{name}})).Coordinators[0]
		return fmt.Sprint(found.Instance.Host, ":", found.Instance.Port)
	}}
}

func leaderOf(topic string) *place {
	return &place{find: func(ctx context.Context) string {
		// The controller is certain: of a topic that does not exist, this ends the program at once.
		known := must(anyone.Metadata(ctx, &coordinator.MetadataRequest{Topics: []string{topic}, FromController: true}))
		for _, each := range known.Instances {
			if each.Role == coordinator.ServiceRole_SERVICE_ROLE_BROKER && each.InstanceId == known.Topics[0].Partitions[0].LeaderId {
				return fmt.Sprint(each.Host, ":", each.Port)
			}
		}
		return "" // It is not there: the call fails, and is made again.
	}}
}

func main() {
	ctx := metadata.AppendToOutgoingContext(context.Background(), "semel-errors", "status") // Those inside an answer, too.
	time.AfterFunc(2*time.Minute, func() { log.Fatal("the time is up") })
	for _, topic := range os.Args[2:] {
		leaders[topic] = broker.NewBrokerServiceClient(leaderOf(topic))
	}
	// From here on, another cluster at these addresses refuses every call.
	ctx = metadata.AppendToOutgoingContext(ctx, "semel-cluster-id", must(anyone.Metadata(ctx, &coordinator.MetadataRequest{})).ClusterId)
	begun := must(transactions.InitProducerId(ctx, &coordinator.InitProducerIdRequest{TransactionalId: &transactionalID,
		InstanceId: rand.Text(), InitNumber: 1, TransactionTimeoutMs: 30_000, Wait: coordinator.WaitFor_WAIT_FOR_DECIDED}))
	// Stable: not before every transaction of the instance before this one has ended at the group.
	stood := must(offsets.FetchOffsets(ctx, &group.FetchOffsetsRequest{GroupId: groupID, RequireStable: true,
		Topics: []*group.OffsetFetchTopic{{Topic: orders, Partitions: []int32{0}}}})).Offsets[0]
	stopped, giveBack := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // Ends after a transaction.
	context.AfterFunc(stopped, giveBack)                                                          // A second signal ends at once.
	for offset, end := max(stood.CommittedOffset, 0), max(stood.CommittedOffset, 0)+1; offset < end && stopped.Err() == nil; {
		read := must(leaders[orders].Fetch(ctx, &broker.FetchRequest{PlainRecords: true, MinBytes: 1, MaxRecords: 2, MaxWaitMs: 500,
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
		// A send without an answer may still arrive: an abort names its topic, too.
		end.Participants.Topics = append(end.Participants.Topics, &common.TopicPartitions{Topic: outputs[n], Partitions: []int32{0}})
		_, err = leaders[outputs[n]].Produce(ctx, &broker.ProduceRequest{TransactionalId: transactionalID,
			Partitions: []*broker.ProducePartition{{Topic: outputs[n], Records: &broker.PlainRecords{Records: read.Records,
				ProducerId: begun.ProducerId, ProducerEpoch: begun.ProducerEpoch, Transactional: true}}}})
	}
	if classOf(err) == "ABORTABLE_TRANSACTION" { // What was refused may still arrive: it never commits.
		end.Result, err = common.TransactionResult_TRANSACTION_RESULT_ABORT, nil
	}
	must(end, err)
	if _, err = transactions.EndTxn(ctx, end); err == nil {
		return end.Result == common.TransactionResult_TRANSACTION_RESULT_COMMIT
	}
	known := must(transactions.GetTransactionOutcome(ctx, &coordinator.GetTransactionOutcomeRequest{
		TransactionalId: transactionalID, ProducerId: begun.ProducerId, ProducerEpoch: begun.ProducerEpoch})).Outcome
	committed := known == coordinator.TransactionOutcome_TRANSACTION_OUTCOME_COMMITTED
	if committed || known == coordinator.TransactionOutcome_TRANSACTION_OUTCOME_ABORTED && classOf(err) == "ABORTABLE_TRANSACTION" {
		return committed
	}
	return must(false, err) // By a newer instance, if it was aborted.
}
