package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	common "example.com/semel-client/gen/semel/common/v1"
)

// failure is an error of the protocol, of a whole call or of one partition. docs/errors.md has all.
type failure struct {
	reason, message string
	details         map[string]string
}

func (f *failure) Error() string { return fmt.Sprint(f.reason, ": ", f.message, " ", f.details) }

var (
	// Send the same again, after a pause; the place may be another one now.
	retriable = strings.Fields(`UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT
		BROKER_NOT_AVAILABLE NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE
		NOT_COORDINATOR CONCURRENT_TRANSACTIONS KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH
		UNSTABLE_OFFSET_COMMIT THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID`)
	// Abort, and do the transaction once more.
	abortable = strings.Fields(`OUT_OF_ORDER_SEQUENCE_NUMBER INVALID_PRODUCER_EPOCH INVALID_TXN_STATE
		TRANSACTION_ABORTABLE BASE_OFFSET_MISMATCH`)
	// Another instance has taken over: this one is done.
	fenced = []string{"PRODUCER_FENCED", "INVALID_PRODUCER_ID_MAPPING"}
)

func isOneOf(err error, reasons []string) bool {
	var f *failure
	return errors.As(err, &f) && slices.Contains(reasons, f.reason)
}

// refused makes an error of one inside an answer.
func refused(e *common.Error) error {
	if e.GetCode() == common.ErrorCode_ERROR_CODE_UNSPECIFIED {
		return nil
	}
	return &failure{strings.TrimPrefix(e.Code.String(), "ERROR_CODE_"), e.Message, e.Metadata}
}

// failed makes a failure of a call's error.
func failed(err error) error {
	state, _ := status.FromError(err)
	for _, detail := range state.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "semel" {
			return &failure{info.Reason, state.Message(), info.Metadata}
		}
	}
	switch state.Code() { // gRPC's own: what was asked may have happened, or not.
	case codes.Unavailable, codes.DeadlineExceeded, codes.Internal, codes.Unimplemented, codes.ResourceExhausted:
		return &failure{"NETWORK_EXCEPTION", err.Error(), nil}
	}
	return err
}
