package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	records "pgqueue-gateway/compat-tests/go-records"
)

// abilities: kafka-go has no cooperative balancer and no group.instance.id. Nor can it
// be in one group with Java, librdkafka and kafka-python 3, on Apache Kafka either:
// its subscription claims version 1 but lacks the owned partitions of that version,
// and as a leader it refuses a subscription that has them.
func abilities() records.Capabilities {
	able := records.Everything()
	able.Group.Assignors = []string{"range", "roundrobin"}
	able.Group.Static = false
	able.Group.Mixed = false
	return able
}

var balancers = map[string]kafka.GroupBalancer{
	"range":      kafka.RangeGroupBalancer{},
	"roundrobin": kafka.RoundRobinGroupBalancer{},
}

// joinBackoff is kafka-go's pause after a failed join, and drainWait how long
// another record may take to count as arrived together with the one before.
const (
	joinBackoff = 500 * time.Millisecond
	drainWait   = 5 * time.Millisecond
)

// group uses ConsumerGroup, which the Reader with a GroupID is built upon: it shows
// the assignments, and its commits belong to their generation. The Reader commits
// a record that it handed out before a rebalance in the generation after it, over
// the head of the partition's new owner.
func group(ctx context.Context, m records.Member) error {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                m.Group,
		Brokers:           []string{m.Bootstrap},
		Topics:            []string{m.Topic},
		GroupBalancers:    []kafka.GroupBalancer{balancers[m.Assignor]},
		HeartbeatInterval: records.HeartbeatInterval,
		SessionTimeout:    records.SessionTimeout,
		RebalanceTimeout:  records.RebalanceTimeout,
		JoinGroupBackoff:  joinBackoff,
		StartOffset:       kafka.FirstOffset,
	})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		generation, err := group.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "Next:", err)
			}
			continue
		}
		assigned := generation.Assignments[m.Topic]
		m.Assigned(partitions(assigned))
		generation.Start(func(ctx context.Context) {
			var running sync.WaitGroup
			for _, each := range assigned {
				running.Go(func() { consumeAssigned(ctx, m, generation, each) })
			}
			// The end of this function is the end of the generation.
			<-ctx.Done()
			running.Wait()
			m.Revoked(partitions(assigned))
		})
	}
	return group.Close()
}

func partitions(assigned []kafka.PartitionAssignment) []int32 {
	var ids []int32
	for _, each := range assigned {
		ids = append(ids, int32(each.ID))
	}
	return ids
}

func consumeAssigned(ctx context.Context, m records.Member, generation *kafka.Generation, assigned kafka.PartitionAssignment) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:   []string{m.Bootstrap},
		Topic:     m.Topic,
		Partition: assigned.ID,
		MinBytes:  1,
		MaxBytes:  fetchBytes,
		MaxWait:   records.FetchWait,
	})
	defer reader.Close()
	if err := reader.SetOffset(assigned.Offset); err != nil {
		fmt.Fprintf(os.Stderr, "partition %d: %v\n", assigned.ID, err)
		return
	}
	for ctx.Err() == nil {
		messages, err := readArrived(ctx, reader)
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "partition %d: %v\n", assigned.ID, err)
		}
		if len(messages) == 0 {
			continue
		}
		for _, message := range messages {
			m.Record(int32(message.Partition), message.Offset, message.Value)
		}
		next := messages[len(messages)-1].Offset + 1
		if err := generation.CommitOffsets(map[string]map[int]int64{m.Topic: {assigned.ID: next}}); err != nil {
			m.CommitFailed(fmt.Errorf("partition %d: %w", assigned.ID, err))
			continue
		}
		m.Committed(int32(assigned.ID), next)
	}
}

// readArrived waits for one record and takes those that come right behind it.
func readArrived(ctx context.Context, reader *kafka.Reader) ([]kafka.Message, error) {
	first, err := reader.ReadMessage(ctx)
	if err != nil {
		return nil, err
	}
	messages := []kafka.Message{first}
	for len(messages) < records.PollRecords {
		arrived, cancel := context.WithTimeout(ctx, drainWait)
		message, err := reader.ReadMessage(arrived)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			break
		}
		if err != nil {
			return messages, err
		}
		messages = append(messages, message)
	}
	return messages, nil
}
