package records

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// Codecs are Kafka's compression types, by the names the tests use.
var Codecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// StallTimeout is how long a consumer may wait for the next record before it
// gives up: the end offset was known at the start, so every record is there.
const StallTimeout = 30 * time.Second

// Capabilities says what a client can send and read back unchanged. The
// comparison leaves out what either the producing or the reading client lacks.
type Capabilities struct {
	Codecs           []string `json:"codecs"`
	Binary           bool     `json:"binary"`
	Headers          bool     `json:"headers"`
	NullHeaderValues bool     `json:"null_header_values"`
	DuplicateHeaders bool     `json:"duplicate_headers"`
	NullKey          bool     `json:"null_key"`
	EmptyKey         bool     `json:"empty_key"`
	NullValue        bool     `json:"null_value"`
	EmptyValue       bool     `json:"empty_value"`
	Timestamps       bool     `json:"timestamps"`
	// MaxValueBytes is the largest record value in bytes.
	MaxValueBytes int   `json:"max_value_bytes"`
	Group         Group `json:"group"`
}

// Everything is the Capabilities of a client without restrictions.
func Everything() Capabilities {
	return Capabilities{
		Codecs:           Codecs,
		Binary:           true,
		Headers:          true,
		NullHeaderValues: true,
		DuplicateHeaders: true,
		NullKey:          true,
		EmptyKey:         true,
		NullValue:        true,
		EmptyValue:       true,
		Timestamps:       true,
		MaxValueBytes:    900 * 1024,
		Group: Group{
			Assignors:        []string{"range", "roundrobin", "cooperative-sticky"},
			Static:           true,
			RebalanceEvents:  true,
			Mixed:            true,
			ReadsInRebalance: true,
		},
	}
}

// Client is one Kafka library under test.
type Client struct {
	Capabilities Capabilities
	// Produce sends the records in order, each to its own partition, and
	// returns nil only when all of them are acknowledged.
	Produce func(bootstrap, topic, codec string, records []Record) error
	// Consume assigns every partition of the topic, asks for the end offsets
	// once, and emits what lies before them in offset order per partition.
	Consume func(bootstrap, topic string, emit func(Record) error) error
	// Group joins, processes and commits until ctx ends, and then closes the
	// consumer in order.
	Group func(ctx context.Context, member Member) error
}

// Main runs the verb on the command line and ends the process.
func Main(client Client) {
	if err := run(client, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(client Client, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "capabilities":
		return json.NewEncoder(os.Stdout).Encode(client.Capabilities)
	case len(args) == 5 && args[0] == "produce":
		return produce(client, args[1], args[2], args[3], args[4])
	case len(args) == 3 && args[0] == "consume":
		return consume(client, args[1], args[2])
	case (len(args) == 5 || len(args) == 6) && args[0] == "group":
		return group(client, args[1:])
	default:
		return fmt.Errorf("usage: capabilities | produce BOOTSTRAP TOPIC CODEC FILE | consume BOOTSTRAP TOPIC" +
			" | group BOOTSTRAP TOPIC GROUP ASSIGNOR [INSTANCE_ID]")
	}
}

func produce(client Client, bootstrap, topic, codec, path string) error {
	if !slices.Contains(client.Capabilities.Codecs, codec) {
		return fmt.Errorf("unknown codec %q, known are %v", codec, client.Capabilities.Codecs)
	}
	records, err := ReadFile(path)
	if err != nil {
		return err
	}
	return client.Produce(bootstrap, topic, codec, records)
}

func consume(client Client, bootstrap, topic string) error {
	out := NewWriter(os.Stdout)
	if err := client.Consume(bootstrap, topic, out.Write); err != nil {
		return err
	}
	return out.Flush()
}
