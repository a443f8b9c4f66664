package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	broker "example.com/semel-client/gen/semel/broker/v1"
	coordinator "example.com/semel-client/gen/semel/coordinator/v1"
	group "example.com/semel-client/gen/semel/group/v1"
)

// cluster knows who is in charge of what, until an error says that it is no longer so.
type cluster struct {
	bootstrap string
	conns     map[string]*grpc.ClientConn
	routes    map[string]string
}

func newCluster(bootstrap string) *cluster {
	return &cluster{bootstrap, map[string]*grpc.ClientConn{}, map[string]string{}}
}

// again makes a call until it is answered with anything but "not now", or the time is up.
func (c *cluster) again(ctx context.Context, call func() error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := call()
		if !isOneOf(err, retriable) || ctx.Err() != nil {
			return err
		}
		clear(c.routes)
		time.Sleep(pause)
	}
}

// fetch reads what is committed; the broker leaves out what is open or aborted.
func (c *cluster) fetch(ctx context.Context, topic string, offset int64) (read *broker.FetchPartitionResult, err error) {
	request := &broker.FetchRequest{MinBytes: 1, MaxBytes: 4096, MaxWaitMs: 500, PlainRecords: true,
		IsolationLevel: broker.IsolationLevel_ISOLATION_LEVEL_READ_COMMITTED,
		Partitions:     []*broker.FetchPartition{{Topic: topic, FetchOffset: offset}}}
	err = c.again(ctx, func() error {
		answer, err := c.leaderOf(topic).Fetch(ctx, request)
		if err != nil {
			return err
		}
		read = answer.Partitions[0]
		return refused(read.Error)
	})
	return read, err
}

// at returns the connection to an address: there is one for each, as long as the process lives.
func (c *cluster) at(address string) *grpc.ClientConn {
	if c.conns[address] == nil {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}))
		if err != nil {
			panic(err) // An address that is none.
		}
		c.conns[address] = conn
	}
	return c.conns[address]
}

// place is a connection to whoever is in charge of one thing, found by asking any coordinator.
type place struct {
	*cluster
	key  string
	find func(context.Context, coordinator.ClusterServiceClient) (*coordinator.Instance, error)
}

// Invoke makes a unary call there, with a deadline.
func (p place) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if p.routes[p.key] == "" {
		found, err := p.find(ctx, coordinator.NewClusterServiceClient(p.at(p.bootstrap)))
		if err != nil {
			return failed(err)
		}
		p.routes[p.key] = net.JoinHostPort(found.Host, strconv.Itoa(int(found.Port)))
	}
	return failed(p.at(p.routes[p.key]).Invoke(ctx, method, request, answer, options...))
}

func (p place) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.ErrUnsupported
}

func (c *cluster) transactionsOf(transactionalID string) coordinator.CoordinatorServiceClient {
	return coordinator.NewCoordinatorServiceClient(c.inCharge(coordinator.CoordinatorType_COORDINATOR_TYPE_TRANSACTION, transactionalID))
}

func (c *cluster) offsetsOf(groupID string) group.GroupServiceClient {
	return group.NewGroupServiceClient(c.inCharge(coordinator.CoordinatorType_COORDINATOR_TYPE_GROUP, groupID))
}

func (c *cluster) inCharge(of coordinator.CoordinatorType, name string) place {
	return place{c, of.String() + name, func(ctx context.Context, any coordinator.ClusterServiceClient) (*coordinator.Instance, error) {
		answer, err := any.FindCoordinator(ctx, &coordinator.FindCoordinatorRequest{Type: of, Keys: []string{name}})
		if err != nil {
			return nil, err
		}
		return answer.Coordinators[0].Instance, refused(answer.Coordinators[0].Error)
	}}
}

func (c *cluster) leaderOf(topic string) broker.BrokerServiceClient {
	return broker.NewBrokerServiceClient(place{c, "topic " + topic, func(ctx context.Context, any coordinator.ClusterServiceClient) (*coordinator.Instance, error) {
		answer, err := any.Metadata(ctx, &coordinator.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return nil, err
		} else if err := refused(answer.Topics[0].Error); err != nil {
			return nil, err
		}
		for _, each := range answer.Instances {
			if each.Role == coordinator.ServiceRole_SERVICE_ROLE_BROKER && each.InstanceId == answer.Topics[0].Partitions[0].LeaderId {
				return each, nil
			}
		}
		return nil, &failure{"BROKER_NOT_AVAILABLE", topic, nil}
	}})
}
