// Command franz-go is the compatibility test client on github.com/twmb/franz-go.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	records "pgqueue-gateway/compat-tests/go-records"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func main() {
	records.Main(records.Client{
		Capabilities: records.Everything(),
		Produce:      produce,
		Consume:      consume,
		Group:        group,
	})
}

// produce keeps franz-go's defaults: idempotent, acks from all, several requests
// in flight.
func produce(bootstrap, topic, codec string, toSend []records.Record) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.DefaultProduceTopic(topic),
		kgo.AllowAutoTopicCreation(),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[codec]),
	)
	if err != nil {
		return err
	}
	defer client.Close()

	messages := make([]*kgo.Record, 0, len(toSend))
	for _, record := range toSend {
		messages = append(messages, messageOf(record))
	}
	// Without a limit, a server that always answers with a retriable error would
	// hold the test forever. kgo.RecordDeliveryTimeout counts from the record's
	// own timestamp, so it is of no use here.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return client.ProduceSync(ctx, messages...).FirstErr()
}

func consume(bootstrap, topic string, emit func(records.Record) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		return err
	}
	defer client.Close()

	start, end, err := offsetRange(client, topic)
	if err != nil {
		return err
	}

	// The partitions are read at the same time, so records of one partition
	// come between those of another, but each partition in offset order.
	assignment := make(map[int32]kgo.Offset)
	for partition, first := range start {
		if first < end[partition] {
			assignment[partition] = kgo.NewOffset().At(first)
		} else {
			delete(end, partition)
		}
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{topic: assignment})

	for len(end) > 0 {
		fetches, err := poll(client)
		if err != nil {
			return err
		}
		for _, message := range fetches.Records() {
			last, wanted := end[message.Partition]
			if !wanted || message.Offset >= last {
				continue
			}
			if err := emit(recordOf(message)); err != nil {
				return err
			}
			if message.Offset == last-1 {
				delete(end, message.Partition)
			}
		}
	}
	return nil
}

// offsetRange asks for the first offset and the end offset of each partition.
func offsetRange(client *kgo.Client, topic string) (start, end map[int32]int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), records.StallTimeout)
	defer cancel()

	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	if err := starts.Error(); err != nil {
		return nil, nil, err
	}
	ends, err := admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, nil, err
	}
	if err := ends.Error(); err != nil {
		return nil, nil, err
	}

	start, end = make(map[int32]int64), make(map[int32]int64)
	starts.Each(func(o kadm.ListedOffset) { start[o.Partition] = o.Offset })
	ends.Each(func(o kadm.ListedOffset) { end[o.Partition] = o.Offset })
	return start, end, nil
}

func poll(client *kgo.Client) (kgo.Fetches, error) {
	ctx, cancel := context.WithTimeout(context.Background(), records.StallTimeout)
	defer cancel()

	fetches := client.PollFetches(ctx)
	for _, failed := range fetches.Errors() {
		return nil, fmt.Errorf("fetch partition %d: %w", failed.Partition, failed.Err)
	}
	return fetches, nil
}

func messageOf(record records.Record) *kgo.Record {
	message := &kgo.Record{
		Partition: record.Partition,
		Key:       record.Key,
		Value:     record.Value,
		Timestamp: time.UnixMilli(record.Timestamp),
	}
	for _, header := range record.Headers {
		message.Headers = append(message.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
	}
	return message
}

func recordOf(message *kgo.Record) records.Record {
	record := records.Record{
		Partition: message.Partition,
		Offset:    message.Offset,
		Key:       message.Key,
		Value:     message.Value,
		Timestamp: message.Timestamp.UnixMilli(),
	}
	for _, header := range message.Headers {
		record.Headers = append(record.Headers, records.Header{Name: header.Key, Value: header.Value})
	}
	return record
}
