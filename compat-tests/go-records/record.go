// Package records is what the Go clients of the compatibility tests share: the
// JSON line form of a record and the command line around a client. It knows no
// Kafka library.
package records

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Record is one Kafka record. A nil Key, Value or Header.Value is Kafka's null;
// an empty, non-nil slice is zero bytes.
type Record struct {
	Partition int32
	// Offset is set on consumed records only.
	Offset  int64
	Key     []byte
	Value   []byte
	Headers []Header
	// Timestamp is in milliseconds since the Unix epoch.
	Timestamp int64
}

// Header is one record header. Names may repeat and their order counts.
type Header struct {
	Name  string
	Value []byte
}

// line is a Record as it stands in the file: byte strings in hexadecimal, null
// as JSON null. Offset is absent from the records to be produced.
type line struct {
	Partition int32    `json:"partition"`
	Offset    *int64   `json:"offset,omitempty"`
	Key       *string  `json:"key"`
	Value     *string  `json:"value"`
	Headers   []header `json:"headers"`
	Timestamp int64    `json:"timestamp"`
}

// header is the pair [name, hexadecimal value or null].
type header [2]*string

// ReadFile reads all records of a JSON lines file, in file order.
func ReadFile(path string) ([]Record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	records, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return records, nil
}

// Read reads records up to the end of in.
func Read(in io.Reader) ([]Record, error) {
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()

	var records []Record
	for {
		var parsed line
		err := decoder.Decode(&parsed)
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		record, err := parsed.record()
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records)+1, err)
		}
		records = append(records, record)
	}
}

// Writer writes consumed records as JSON lines. Call Flush when done.
type Writer struct {
	buffer  *bufio.Writer
	encoder *json.Encoder
}

// NewWriter returns a buffering Writer on out.
func NewWriter(out io.Writer) *Writer {
	buffer := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	return &Writer{buffer: buffer, encoder: encoder}
}

// Write writes one record, with its offset.
func (w *Writer) Write(record Record) error {
	return w.encoder.Encode(lineOf(record))
}

// Flush hands everything written so far to the underlying writer.
func (w *Writer) Flush() error {
	return w.buffer.Flush()
}

func (l line) record() (Record, error) {
	record := Record{Partition: l.Partition, Timestamp: l.Timestamp}
	if l.Offset != nil {
		record.Offset = *l.Offset
	}
	var err error
	if record.Key, err = fromHex(l.Key); err != nil {
		return Record{}, fmt.Errorf("key: %w", err)
	}
	if record.Value, err = fromHex(l.Value); err != nil {
		return Record{}, fmt.Errorf("value: %w", err)
	}
	for _, pair := range l.Headers {
		if pair[0] == nil {
			return Record{}, errors.New("a header has no name")
		}
		value, err := fromHex(pair[1])
		if err != nil {
			return Record{}, fmt.Errorf("header %q: %w", *pair[0], err)
		}
		record.Headers = append(record.Headers, Header{Name: *pair[0], Value: value})
	}
	return record, nil
}

func lineOf(record Record) line {
	// Made, not nil, so that "no headers" is [] and never null.
	headers := make([]header, 0, len(record.Headers))
	for _, h := range record.Headers {
		headers = append(headers, header{&h.Name, toHex(h.Value)})
	}
	return line{
		Partition: record.Partition,
		Offset:    &record.Offset,
		Key:       toHex(record.Key),
		Value:     toHex(record.Value),
		Headers:   headers,
		Timestamp: record.Timestamp,
	}
}

func fromHex(text *string) ([]byte, error) {
	if text == nil {
		return nil, nil
	}
	decoded, err := hex.DecodeString(*text)
	if decoded == nil {
		// Zero bytes must not become null.
		decoded = []byte{}
	}
	return decoded, err
}

func toHex(raw []byte) *string {
	if raw == nil {
		return nil
	}
	text := hex.EncodeToString(raw)
	return &text
}
