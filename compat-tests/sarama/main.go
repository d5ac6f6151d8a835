// Command sarama is the compatibility test client on github.com/IBM/sarama.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	records "pgqueue-gateway/compat-tests/go-records"
)

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

func main() {
	records.Main(records.Client{
		Capabilities: abilities(),
		Produce:      produce,
		Consume:      consume,
		Group:        group,
	})
}

// produce sends without idempotence, unlike the franz-go client, and keeps
// sarama's default Config.Version.
func produce(bootstrap, topic, codec string, toSend []records.Record) error {
	config := sarama.NewConfig()
	config.Producer.Idempotent = false
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Compression = codecs[codec]
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	// A little below Kafka's default max.message.bytes of 1048588, and above
	// the largest value.
	config.Producer.MaxMessageBytes = 1_000_000
	// With more requests in flight and no idempotence a retry changes the order.
	config.Net.MaxOpenRequests = 1

	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	if err != nil {
		return err
	}

	messages := make([]*sarama.ProducerMessage, 0, len(toSend))
	for _, record := range toSend {
		messages = append(messages, messageOf(topic, record))
	}
	if err := producer.SendMessages(messages); err != nil {
		producer.Close()
		if failed, ok := errors.AsType[sarama.ProducerErrors](err); ok {
			return fmt.Errorf("%w, the first: %w", err, failed[0])
		}
		return err
	}
	return producer.Close()
}

func consume(bootstrap, topic string, emit func(records.Record) error) error {
	client, err := sarama.NewClient([]string{bootstrap}, sarama.NewConfig())
	if err != nil {
		return err
	}
	defer client.Close()

	partitions, err := client.Partitions(topic)
	if err != nil {
		return err
	}
	// All end offsets are asked for before the first record is read.
	end := make(map[int32]int64)
	for _, partition := range partitions {
		if end[partition], err = client.GetOffset(topic, partition, sarama.OffsetNewest); err != nil {
			return fmt.Errorf("end offset of partition %d: %w", partition, err)
		}
	}

	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	defer consumer.Close()
	for _, partition := range partitions {
		start, err := client.GetOffset(topic, partition, sarama.OffsetOldest)
		if err != nil {
			return fmt.Errorf("start offset of partition %d: %w", partition, err)
		}
		if start >= end[partition] {
			continue
		}
		if err := consumePartition(consumer, topic, partition, start, end[partition], emit); err != nil {
			return fmt.Errorf("partition %d: %w", partition, err)
		}
	}
	return nil
}

// consumePartition emits the records from start up to, not including, end.
func consumePartition(consumer sarama.Consumer, topic string, partition int32, start, end int64, emit func(records.Record) error) error {
	stream, err := consumer.ConsumePartition(topic, partition, start)
	if err != nil {
		return err
	}
	defer stream.AsyncClose()

	for {
		select {
		case message, open := <-stream.Messages():
			if !open {
				return fmt.Errorf("sarama gave the partition up before offset %d", end)
			}
			if message.Offset < end {
				if err := emit(recordOf(message)); err != nil {
					return err
				}
			}
			if message.Offset >= end-1 {
				return nil
			}
		case <-time.After(records.StallTimeout):
			return fmt.Errorf("no record for %v, the end offset is %d", records.StallTimeout, end)
		}
	}
}

func messageOf(topic string, record records.Record) *sarama.ProducerMessage {
	message := &sarama.ProducerMessage{
		Topic:     topic,
		Partition: record.Partition,
		Timestamp: time.UnixMilli(record.Timestamp),
	}
	// sarama's null is the nil Encoder; a ByteEncoder is a value, even an empty one.
	if record.Key != nil {
		message.Key = sarama.ByteEncoder(record.Key)
	}
	if record.Value != nil {
		message.Value = sarama.ByteEncoder(record.Value)
	}
	for _, header := range record.Headers {
		message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
	}
	return message
}

func recordOf(message *sarama.ConsumerMessage) records.Record {
	record := records.Record{
		Partition: message.Partition,
		Offset:    message.Offset,
		Key:       message.Key,
		Value:     message.Value,
		Timestamp: message.Timestamp.UnixMilli(),
	}
	for _, header := range message.Headers {
		record.Headers = append(record.Headers, records.Header{Name: string(header.Key), Value: header.Value})
	}
	return record
}
