// Takes every order of one topic exactly once into two others, each topic of one partition:
// `go run . BOOTSTRAP ORDERS INVOICES AUDIT`. Status 3: another instance has taken over.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"os"
	"time"

	broker "example.com/semel-client/gen/semel/broker/v1"
	common "example.com/semel-client/gen/semel/common/v1"
	coordinator "example.com/semel-client/gen/semel/coordinator/v1"
	group "example.com/semel-client/gen/semel/group/v1"
)

const commit, abort = common.TransactionResult_TRANSACTION_RESULT_COMMIT, common.TransactionResult_TRANSACTION_RESULT_ABORT

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	i := invoicer{cluster: newCluster(os.Args[1]), id: "invoicer-of-" + os.Args[2], group: "invoicers-of-" + os.Args[2]}
	if err := i.run(ctx, os.Args[2], os.Args[3:]); isOneOf(err, fenced) {
		log.Print(err)
		os.Exit(3)
	} else if err != nil {
		log.Fatal(err)
	}
}

// invoicer is one instance of a transactional id. Its current transaction is (producerID, epoch).
type invoicer struct {
	*cluster
	id, group         string
	producerID, epoch int64
}

func (i *invoicer) run(ctx context.Context, orders string, outputs []string) error {
	offset, err := i.begin(ctx, orders)
	for end := offset + 1; err == nil && offset < end; {
		var read *broker.FetchPartitionResult
		if read, err = i.fetch(ctx, orders, offset); err != nil {
			break
		}
		committed := len(read.Records) == 0 // What was aborted is done once more.
		for !committed && err == nil {
			committed, err = i.transaction(ctx, orders, read, outputs)
		}
		offset, end = read.NextOffset, read.HighWatermark
	}
	return err
}

// begin fences the instance before this one, and answers where the group stands.
func (i *invoicer) begin(ctx context.Context, orders string) (offset int64, err error) {
	request := &coordinator.InitProducerIdRequest{TransactionalId: &i.id, InstanceId: rand.Text(), InitNumber: 1,
		TransactionTimeoutMs: 30_000, Wait: coordinator.WaitFor_WAIT_FOR_DECIDED}
	if err = i.again(ctx, func() error {
		began, err := i.transactionsOf(i.id).InitProducerId(ctx, request)
		i.producerID, i.epoch = began.GetProducerId(), began.GetProducerEpoch()
		return err
	}); err != nil {
		return 0, err
	}
	// Stable: not before every transaction of the instance before this one has ended at the group.
	ask := &group.FetchOffsetsRequest{GroupId: i.group, RequireStable: true,
		Topics: []*group.OffsetFetchTopic{{Topic: orders, Partitions: []int32{0}}}}
	err = i.again(ctx, func() error {
		answer, err := i.offsetsOf(i.group).FetchOffsets(ctx, ask)
		if err != nil {
			return err
		}
		offset = max(answer.Offsets[0].CommittedOffset, 0)
		return refused(answer.Offsets[0].Error)
	})
	return offset, err
}

// transaction writes to all outputs and moves the group, all or nothing; false: it was aborted.
func (i *invoicer) transaction(ctx context.Context, orders string, read *broker.FetchPartitionResult, outputs []string) (bool, error) {
	written := &common.Participants{GroupIds: []string{i.group}}
	offsets := &group.TxnOffsetCommitRequest{TransactionalId: i.id, ProducerId: i.producerID, ProducerEpoch: i.epoch,
		GroupId: i.group, MemberEpoch: -1, Topics: []*group.OffsetCommitTopic{{Topic: orders,
			Partitions: []*group.OffsetCommitPartition{{CommittedOffset: read.NextOffset}}}}}
	err := i.again(ctx, func() error {
		_, err := i.offsetsOf(i.group).TxnOffsetCommit(ctx, offsets)
		return err
	})
	for n := 0; n < len(outputs) && err == nil; n++ {
		// A transaction's first batch in a partition has sequence 0; the next one has len(read.Records).
		batch := &broker.ProduceRequest{TransactionalId: i.id, Partitions: []*broker.ProducePartition{{Topic: outputs[n],
			Records: &broker.PlainRecords{Records: read.Records, ProducerId: i.producerID, ProducerEpoch: i.epoch, Transactional: true}}}}
		err = i.again(ctx, func() error { // The same request each time: so the broker knows a repeat.
			answer, err := i.leaderOf(outputs[n]).Produce(ctx, batch)
			if err != nil {
				return err
			}
			partition := &common.TopicPartitions{TopicId: answer.Partitions[0].TopicId, Partitions: []int32{0}}
			written.Topics = append(written.Topics, partition)
			return refused(answer.Partitions[0].Error)
		})
	}
	if isOneOf(err, abortable) { // What was refused may still arrive: such a transaction never commits.
		log.Print("aborting: ", err)
		return i.end(ctx, abort, nil)
	} else if err != nil {
		return false, err
	}
	return i.end(ctx, commit, written)
}

// end decides the transaction and begins the next one; false: this one was aborted.
func (i *invoicer) end(ctx context.Context, result common.TransactionResult, written *common.Participants) (bool, error) {
	for {
		ended, err := i.transactionsOf(i.id).EndTxn(ctx, &coordinator.EndTxnRequest{TransactionalId: i.id,
			ProducerId: i.producerID, ProducerEpoch: i.epoch, Result: result, Participants: written})
		if err == nil {
			i.epoch = ended.ProducerEpoch
			return result == commit, nil
		}
		log.Print("was it committed? ", err)
		var known *coordinator.GetTransactionOutcomeResponse
		if unknown := i.again(ctx, func() (err error) {
			known, err = i.transactionsOf(i.id).GetTransactionOutcome(ctx, &coordinator.GetTransactionOutcomeRequest{
				TransactionalId: i.id, ProducerId: i.producerID, ProducerEpoch: i.epoch})
			return err
		}); unknown != nil {
			return false, fmt.Errorf("outcome of transaction %d unknown: %w", i.epoch, unknown)
		}
		switch {
		case known.AbortReason == coordinator.AbortReason_ABORT_REASON_FENCED:
			return false, &failure{reason: "PRODUCER_FENCED", message: "a newer instance has aborted it"}
		case known.Outcome == coordinator.TransactionOutcome_TRANSACTION_OUTCOME_COMMITTED,
			known.Outcome == coordinator.TransactionOutcome_TRANSACTION_OUTCOME_ABORTED:
			i.epoch++ // Never current_epoch, which may be a successor's.
			return known.Outcome == coordinator.TransactionOutcome_TRANSACTION_OUTCOME_COMMITTED, nil
		case !isOneOf(err, retriable):
			return false, err
		} // Not decided: send the same once more.
	}
}
