package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	records "pgqueue-gateway/compat-tests/go-records"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

// joinPatience is how long a commit after a poll may take: the client holds commits
// back while it joins, and a cooperative member is to read on meanwhile. What was not
// committed is committed after the next poll.
const joinPatience = time.Second

// member holds what was processed and is not committed. BlockRebalanceOnPoll lets
// polls and callbacks never run at the same time, so it needs no lock.
type member struct {
	records.Member
	pending map[int32]kgo.EpochOffset
}

func group(ctx context.Context, told records.Member) error {
	m := &member{Member: told, pending: make(map[int32]kgo.EpochOffset)}
	options := []kgo.Opt{
		kgo.SeedBrokers(m.Bootstrap),
		kgo.ConsumeTopics(m.Topic),
		kgo.ConsumerGroup(m.Group),
		kgo.Balancers(balancers[m.Assignor]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(records.SessionTimeout),
		kgo.HeartbeatInterval(records.HeartbeatInterval),
		kgo.RebalanceTimeout(records.RebalanceTimeout),
		kgo.FetchMaxWait(records.FetchWait),
		kgo.OnPartitionsAssigned(m.assigned),
		kgo.OnPartitionsRevoked(m.revoked),
		kgo.OnPartitionsLost(m.lost),
	}
	if m.InstanceID != "" {
		options = append(options, kgo.InstanceID(m.InstanceID))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	// It revokes what the member has, and so commits what is pending.
	defer client.CloseAllowingRebalance()

	for ctx.Err() == nil {
		fetches := client.PollRecords(ctx, records.PollRecords)
		for _, failed := range fetches.Errors() {
			if errors.Is(failed.Err, kerr.FencedInstanceID) {
				return failed.Err
			}
			if ctx.Err() == nil {
				fmt.Fprintf(os.Stderr, "partition %d: %v\n", failed.Partition, failed.Err)
			}
		}
		fetches.EachRecord(func(record *kgo.Record) {
			m.Record(record.Partition, record.Offset, record.Value)
			m.pending[record.Partition] = kgo.EpochOffset{Epoch: record.LeaderEpoch, Offset: record.Offset + 1}
		})
		m.commit(client, joinPatience)
		client.AllowRebalance()
	}
	return nil
}

func (m *member) assigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	m.Assigned(added[m.Topic])
}

func (m *member) revoked(_ context.Context, client *kgo.Client, taken map[string][]int32) {
	m.commit(client, records.CommitTimeout)
	m.forget(taken[m.Topic])
	m.Revoked(taken[m.Topic])
}

func (m *member) lost(_ context.Context, _ *kgo.Client, taken map[string][]int32) {
	m.forget(taken[m.Topic])
	m.Lost(taken[m.Topic])
}

// forget keeps the offsets of partitions that now belong to others out of later commits.
func (m *member) forget(partitions []int32) {
	for _, partition := range partitions {
		delete(m.pending, partition)
	}
}

func (m *member) commit(client *kgo.Client, patience time.Duration) {
	if len(m.pending) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()

	offsets := map[string]map[int32]kgo.EpochOffset{m.Topic: m.pending}
	client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		if err != nil {
			m.CommitFailed(err)
			return
		}
		for _, topic := range response.Topics {
			for _, partition := range topic.Partitions {
				if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
					m.CommitFailed(fmt.Errorf("partition %d: %w", partition.Partition, err))
					continue
				}
				m.Committed(partition.Partition, m.pending[partition.Partition].Offset)
				delete(m.pending, partition.Partition)
			}
		}
	})
}
