package records

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// The settings of a group member, the same for every client.
const (
	SessionTimeout    = 6 * time.Second
	HeartbeatInterval = 500 * time.Millisecond
	RebalanceTimeout  = 15 * time.Second
	// CommitTimeout bounds one commit where the library lets it be bounded.
	CommitTimeout = 4 * time.Second
	// PollRecords is how many records may come between two commits.
	PollRecords = 500
	// FetchWait is how long a Fetch may wait for records: closing waits for it.
	FetchWait = 250 * time.Millisecond
)

// closeTimeout is what a member may take for its end: some libraries cannot give
// up a JoinGroup that waits for the other members.
const closeTimeout = 9 * time.Second

// Group says what a client can do as a member of a consumer group.
type Group struct {
	Assignors []string `json:"assignors"`
	// Static is group.instance.id (KIP-345).
	Static bool `json:"static"`
	// RebalanceEvents tells that assigned and revoked are printed.
	RebalanceEvents bool `json:"rebalance_events"`
	// Mixed tells that it can be in one group with every other client.
	Mixed bool `json:"mixed"`
	// ReadsInRebalance tells that a cooperative rebalance does not keep it from reading.
	ReadsInRebalance bool `json:"reads_in_rebalance"`
}

// Member is one member to be: which group it joins, and where it tells what happens.
type Member struct {
	Bootstrap, Topic, Group, Assignor string
	// InstanceID makes the member a static one; empty for a dynamic one.
	InstanceID string
	*Events
}

// Events prints what happens to a member, one JSON object a line, each at once.
// Its methods may be called from several goroutines.
type Events struct {
	mutex sync.Mutex
	out   *json.Encoder
}

// NewEvents returns Events that write to out.
func NewEvents(out io.Writer) *Events {
	return &Events{out: json.NewEncoder(out)}
}

type partitionsEvent struct {
	Event      string  `json:"event"`
	Partitions []int32 `json:"partitions"`
}

type recordEvent struct {
	Event     string  `json:"event"`
	Partition int32   `json:"partition"`
	Offset    int64   `json:"offset"`
	Value     *string `json:"value"`
}

type committedEvent struct {
	Event     string `json:"event"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

type commitFailedEvent struct {
	Event string `json:"event"`
	Error string `json:"error"`
}

type closedEvent struct {
	Event string `json:"event"`
}

// Assigned tells which partitions were added; none at all is worth a line.
func (e *Events) Assigned(partitions []int32) {
	e.print(partitionsEvent{"assigned", sorted(partitions)})
}

// Revoked tells which partitions were taken; silent about none.
func (e *Events) Revoked(partitions []int32) {
	if len(partitions) > 0 {
		e.print(partitionsEvent{"revoked", sorted(partitions)})
	}
}

// Lost tells which partitions are gone without a chance to commit; silent about none.
func (e *Events) Lost(partitions []int32) {
	if len(partitions) > 0 {
		e.print(partitionsEvent{"lost", sorted(partitions)})
	}
}

// Record tells that a record was processed.
func (e *Events) Record(partition int32, offset int64, value []byte) {
	e.print(recordEvent{"record", partition, offset, toHex(value)})
}

// Committed tells that offset is the next one to read of the partition.
func (e *Events) Committed(partition int32, offset int64) {
	e.print(committedEvent{"committed", partition, offset})
}

// CommitFailed tells why a commit was refused.
func (e *Events) CommitFailed(err error) {
	e.print(commitFailedEvent{"commit_failed", err.Error()})
}

func (e *Events) closed() {
	e.print(closedEvent{"closed"})
}

func (e *Events) print(event any) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if err := e.out.Encode(event); err != nil {
		fmt.Fprintln(os.Stderr, "standard output:", err)
		os.Exit(1)
	}
}

// sorted returns a copy in order, never nil: the line has [] and not null.
func sorted(partitions []int32) []int32 {
	copied := append([]int32{}, partitions...)
	slices.Sort(copied)
	return copied
}

// group runs one member until the end of standard input.
func group(client Client, args []string) error {
	member := Member{
		Bootstrap: args[0],
		Topic:     args[1],
		Group:     args[2],
		Assignor:  args[3],
		Events:    NewEvents(os.Stdout),
	}
	if len(args) == 5 {
		member.InstanceID = args[4]
	}
	able := client.Capabilities.Group
	if !slices.Contains(able.Assignors, member.Assignor) {
		return fmt.Errorf("unknown assignor %q, known are %v", member.Assignor, able.Assignors)
	}
	if member.InstanceID != "" && !able.Static {
		return fmt.Errorf("this client has no group.instance.id")
	}

	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
		time.AfterFunc(closeTimeout, func() {
			fmt.Fprintf(os.Stderr, "still closing after %v: gives up\n", closeTimeout)
			os.Exit(0)
		})
	}()
	if err := client.Group(ctx, member); err != nil {
		return err
	}
	member.closed()
	return nil
}
