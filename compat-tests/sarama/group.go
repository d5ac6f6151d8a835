package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"

	records "pgqueue-gateway/compat-tests/go-records"
)

var strategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

// abilities: sarama's Commit waits for the answer on the connection on which the
// coordinator holds back the answer to its JoinGroup.
func abilities() records.Capabilities {
	able := records.Everything()
	able.Group.ReadsInRebalance = false
	return able
}

// retryPause is between two calls of Consume when the first one failed.
const retryPause = 500 * time.Millisecond

// member is the handler of all sessions of one group member.
type member struct {
	records.Member
	admin sarama.ClusterAdmin
	// polling keeps the claims, which run at the same time, apart: a commit is for
	// all of them.
	polling sync.Mutex
}

func group(ctx context.Context, told records.Member) error {
	config := sarama.NewConfig()
	// Static members need 2.3, the cooperative strategy 2.4.
	config.Version = sarama.MaxVersion
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.MaxWaitTime = records.FetchWait
	config.Consumer.Return.Errors = true
	config.Consumer.Group.Session.Timeout = records.SessionTimeout
	config.Consumer.Group.Heartbeat.Interval = records.HeartbeatInterval
	config.Consumer.Group.Rebalance.Timeout = records.RebalanceTimeout
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[told.Assignor]()}
	config.Consumer.Group.InstanceId = told.InstanceID

	admin, err := sarama.NewClusterAdmin([]string{told.Bootstrap}, config)
	if err != nil {
		return err
	}
	defer admin.Close()
	group, err := sarama.NewConsumerGroup([]string{told.Bootstrap}, told.Group, config)
	if err != nil {
		return err
	}
	go func() {
		for err := range group.Errors() {
			fmt.Fprintln(os.Stderr, err)
		}
	}()

	m := &member{Member: told, admin: admin}
	for ctx.Err() == nil {
		err := group.Consume(ctx, []string{m.Topic}, m)
		if errors.Is(err, sarama.ErrFencedInstancedId) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "Consume:", err)
			select {
			case <-time.After(retryPause):
			case <-ctx.Done():
			}
		}
	}
	// Nothing is left of it once the member is told to go: an error is of no use.
	if err := group.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "Close:", err)
	}
	return nil
}

// Setup tells of an assignment without partitions; the others are told by claim,
// which the cooperative strategy adds and takes without a new session.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	if len(session.Claims()[m.Topic]) == 0 {
		m.Assigned(nil)
	}
	return nil
}

// Cleanup has nothing to do: each claim commits what it processed.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	partition := []int32{claim.Partition()}
	m.Assigned(partition)
	defer m.Revoked(partition)

	for message := range claim.Messages() {
		m.process(session, claim, message)
	}
	return nil
}

// process takes what has arrived behind the first message as well, up to a limit.
func (m *member) process(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim, first *sarama.ConsumerMessage) {
	m.polling.Lock()
	defer m.polling.Unlock()

	last := first
	m.Record(first.Partition, first.Offset, first.Value)
	for n := 1; n < records.PollRecords; n++ {
		message := arrived(claim)
		if message == nil {
			break
		}
		m.Record(message.Partition, message.Offset, message.Value)
		last = message
	}
	session.MarkMessage(last, "")
	session.Commit()
	m.tell(last.Partition, last.Offset+1)
}

// arrived returns the next message if it is there already.
func arrived(claim sarama.ConsumerGroupClaim) *sarama.ConsumerMessage {
	select {
	case message := <-claim.Messages():
		return message
	default:
		return nil
	}
}

// tell asks the server what is committed: Commit does not say how it ended.
func (m *member) tell(partition int32, offset int64) {
	committed, err := m.admin.ListConsumerGroupOffsets(m.Group, map[string][]int32{m.Topic: {partition}})
	if err == nil && committed.Err != sarama.ErrNoError {
		err = committed.Err
	}
	if err != nil {
		m.CommitFailed(err)
		return
	}
	block := committed.GetBlock(m.Topic, partition)
	switch {
	case block == nil:
		m.CommitFailed(fmt.Errorf("partition %d: no offset in the answer", partition))
	case block.Err != sarama.ErrNoError:
		m.CommitFailed(fmt.Errorf("partition %d: %w", partition, block.Err))
	case block.Offset != offset:
		m.CommitFailed(fmt.Errorf("partition %d: %d is committed instead of %d", partition, block.Offset, offset))
	default:
		m.Committed(partition, offset)
	}
}
