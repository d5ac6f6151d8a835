package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/kafka-go"

	records "pgqueue-gateway/compat-tests/go-records"
)

// fetchBytes bounds one Fetch response; a batch larger than it still arrives
// whole (KIP-74).
const fetchBytes = 10 << 20

// fetchPartition emits the records of the range with Client.Fetch.
func fetchPartition(client *kafka.Client, topic string, r kafka.PartitionOffsets, emit func(records.Record) error) error {
	next := r.FirstOffset
	stalled := time.Now().Add(records.StallTimeout)
	for next < r.LastOffset {
		if time.Now().After(stalled) {
			return fmt.Errorf("no record at offset %d for %v, the end offset is %d", next, records.StallTimeout, r.LastOffset)
		}
		fetched, err := fetchFrom(client, topic, r.Partition, next)
		if err != nil {
			return err
		}
		for _, record := range fetched {
			// A batch may begin before the offset asked for.
			if record.Offset < next || record.Offset >= r.LastOffset {
				continue
			}
			if err := emit(record); err != nil {
				return err
			}
			next = record.Offset + 1
			stalled = time.Now().Add(records.StallTimeout)
		}
	}
	return nil
}

// fetchFrom sends one Fetch request.
func fetchFrom(client *kafka.Client, topic string, partition int, offset int64) ([]records.Record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), records.StallTimeout)
	defer cancel()

	response, err := client.Fetch(ctx, &kafka.FetchRequest{
		Topic:     topic,
		Partition: partition,
		Offset:    offset,
		MinBytes:  1,
		MaxBytes:  fetchBytes,
		MaxWait:   records.FetchWait,
	})
	if err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, fmt.Errorf("fetch at offset %d: %w", offset, response.Error)
	}

	var fetched []records.Record
	for {
		received, err := response.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			return fetched, nil
		}
		if err != nil {
			return nil, err
		}
		record := records.Record{
			Partition: int32(partition),
			Offset:    received.Offset,
			Headers:   headersOf(received.Headers),
			Timestamp: received.Time.UnixMilli(),
		}
		if record.Key, err = readAndClose(received.Key); err != nil {
			return nil, err
		}
		if record.Value, err = readAndClose(received.Value); err != nil {
			return nil, err
		}
		fetched = append(fetched, record)
	}
}

// readAndClose copies the bytes out of kafka-go's buffer; nil stays nil.
func readAndClose(raw kafka.Bytes) ([]byte, error) {
	if raw == nil {
		return nil, nil
	}
	defer raw.Close()
	return kafka.ReadAll(raw)
}

// sameButForNull compares what the two implementations of Fetch returned.
func sameButForNull(fromReader, fromFetch records.Record) error {
	same := fromReader.Offset == fromFetch.Offset &&
		fromReader.Timestamp == fromFetch.Timestamp &&
		bytes.Equal(fromReader.Key, fromFetch.Key) &&
		bytes.Equal(fromReader.Value, fromFetch.Value) &&
		len(fromReader.Headers) == len(fromFetch.Headers)
	for i := 0; same && i < len(fromFetch.Headers); i++ {
		same = fromReader.Headers[i].Name == fromFetch.Headers[i].Name &&
			bytes.Equal(fromReader.Headers[i].Value, fromFetch.Headers[i].Value)
	}
	if !same {
		return fmt.Errorf("Reader returned another record (offset %d) than Client.Fetch (offset %d)", fromReader.Offset, fromFetch.Offset)
	}
	return nil
}
