// Command kafka-go is the compatibility test client on
// github.com/segmentio/kafka-go.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	records "pgqueue-gateway/compat-tests/go-records"
)

var codecs = map[string]kafka.Compression{
	"none":   0,
	"gzip":   kafka.Gzip,
	"snappy": kafka.Snappy,
	"lz4":    kafka.Lz4,
	"zstd":   kafka.Zstd,
}

func main() {
	records.Main(records.Client{
		Capabilities: abilities(),
		Produce:      produce,
		Consume:      consume,
		Group:        group,
	})
}

// produce uses the Writer: it is not idempotent and has one request per
// partition in flight.
func produce(bootstrap, topic, codec string, toSend []records.Record) error {
	writer := &kafka.Writer{
		Addr:                   kafka.TCP(bootstrap),
		Topic:                  topic,
		Balancer:               kafka.BalancerFunc(givenPartition),
		RequiredAcks:           kafka.RequireAll,
		Compression:            codecs[codec],
		AllowAutoTopicCreation: true,
		// A little below Kafka's default max.message.bytes of 1048588, and above
		// the largest value.
		BatchBytes: 1_000_000,
		// Everything is handed over in one call, so waiting for more is in vain.
		BatchTimeout: 10 * time.Millisecond,
	}

	messages := make([]kafka.Message, 0, len(toSend))
	for _, record := range toSend {
		messages = append(messages, messageOf(record))
	}
	if err := writeMessages(writer, messages); err != nil {
		writer.Close()
		return err
	}
	return writer.Close()
}

// writeMessages also waits for a topic that is still being created: the Writer
// asks for it, but leaves it to the caller to try again. These two errors come
// from the look-up of the topic, before anything is sent; errors of sending are
// a WriteErrors, which errors.Is does not look into.
func writeMessages(writer *kafka.Writer, messages []kafka.Message) error {
	deadline := time.Now().Add(records.StallTimeout)
	for {
		err := writer.WriteMessages(context.Background(), messages...)
		creating := errors.Is(err, kafka.UnknownTopicOrPartition) || errors.Is(err, kafka.LeaderNotAvailable)
		if !creating || time.Now().After(deadline) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// givenPartition picks the partition that messageOf put into WriterData: the
// Writer does not look at Message.Partition.
func givenPartition(message kafka.Message, _ ...int) int {
	return message.WriterData.(int)
}

func consume(bootstrap, topic string, emit func(records.Record) error) error {
	client := &kafka.Client{Addr: kafka.TCP(bootstrap)}
	ranges, err := offsetRanges(client, topic)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if r.FirstOffset >= r.LastOffset {
			continue
		}
		if err := consumePartition(bootstrap, client, topic, r, emit); err != nil {
			return fmt.Errorf("partition %d: %w", r.Partition, err)
		}
	}
	return nil
}

// offsetRanges asks for the first offset and the end offset (which kafka-go
// calls LastOffset) of every partition.
func offsetRanges(client *kafka.Client, topic string) ([]kafka.PartitionOffsets, error) {
	ctx, cancel := context.WithTimeout(context.Background(), records.StallTimeout)
	defer cancel()

	metadata, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, err
	}
	if len(metadata.Topics) != 1 {
		return nil, fmt.Errorf("asked for topic %s, got metadata of %d topics", topic, len(metadata.Topics))
	}
	if err := metadata.Topics[0].Error; err != nil {
		return nil, err
	}

	var questions []kafka.OffsetRequest
	for _, partition := range metadata.Topics[0].Partitions {
		questions = append(questions, kafka.FirstOffsetOf(partition.ID), kafka.LastOffsetOf(partition.ID))
	}
	answer, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{topic: questions},
	})
	if err != nil {
		return nil, err
	}
	for _, r := range answer.Topics[topic] {
		if r.Error != nil {
			return nil, fmt.Errorf("offsets of partition %d: %w", r.Partition, r.Error)
		}
	}
	return answer.Topics[topic], nil
}

// consumePartition reads the partition twice, because kafka-go has two separate
// implementations of Fetch: the Reader, which its users use, cannot tell null
// from empty, and Client.Fetch, which can and so provides what is emitted. Apart
// from that the two must agree.
func consumePartition(bootstrap string, client *kafka.Client, topic string, r kafka.PartitionOffsets, emit func(records.Record) error) error {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:   []string{bootstrap},
		Topic:     topic,
		Partition: r.Partition,
		MinBytes:  1,
		MaxBytes:  fetchBytes,
		MaxWait:   records.FetchWait,
	})
	defer reader.Close()
	if err := reader.SetOffset(r.FirstOffset); err != nil {
		return err
	}

	return fetchPartition(client, topic, r, func(record records.Record) error {
		ctx, cancel := context.WithTimeout(context.Background(), records.StallTimeout)
		defer cancel()
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return fmt.Errorf("Reader at offset %d: %w", record.Offset, err)
		}
		if err := sameButForNull(recordOf(message), record); err != nil {
			return err
		}
		return emit(record)
	})
}

func messageOf(record records.Record) kafka.Message {
	message := kafka.Message{
		WriterData: int(record.Partition),
		Key:        record.Key,
		Value:      record.Value,
		Time:       time.UnixMilli(record.Timestamp),
	}
	for _, header := range record.Headers {
		message.Headers = append(message.Headers, kafka.Header{Key: header.Name, Value: header.Value})
	}
	return message
}

func recordOf(message kafka.Message) records.Record {
	return records.Record{
		Partition: int32(message.Partition),
		Offset:    message.Offset,
		Key:       message.Key,
		Value:     message.Value,
		Headers:   headersOf(message.Headers),
		Timestamp: message.Time.UnixMilli(),
	}
}

func headersOf(headers []kafka.Header) []records.Header {
	var converted []records.Header
	for _, header := range headers {
		converted = append(converted, records.Header{Name: header.Key, Value: header.Value})
	}
	return converted
}
