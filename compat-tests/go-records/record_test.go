package records

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestNullAndEmptyStayApart(t *testing.T) {
	text := `{"partition":2,"offset":7,"key":null,"value":"","headers":[["a",null],["a",""],["<b>","00ff"]],"timestamp":-1}` + "\n" +
		`{"partition":0,"offset":8,"key":"","value":null,"headers":[],"timestamp":1700000000000}` + "\n"

	records, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{
		{
			Partition: 2, Offset: 7, Key: nil, Value: []byte{}, Timestamp: -1,
			Headers: []Header{{"a", nil}, {"a", []byte{}}, {"<b>", []byte{0x00, 0xff}}},
		},
		{Partition: 0, Offset: 8, Key: []byte{}, Value: nil, Timestamp: 1700000000000},
	}
	if !reflect.DeepEqual(records, want) {
		t.Fatalf("read %#v, want %#v", records, want)
	}

	var out bytes.Buffer
	writer := NewWriter(&out)
	for _, record := range records {
		if err := writer.Write(record); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Flush(); err != nil {
		t.Fatal(err)
	}
	if out.String() != text {
		t.Fatalf("wrote %s, want %s", out.String(), text)
	}
}

func TestBadLinesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON":         `{"partition":`,
		"unknown field":    `{"partition":0,"keys":"00"}`,
		"odd hexadecimal":  `{"partition":0,"key":"0"}`,
		"header, no name":  `{"partition":0,"headers":[[null,"00"]]}`,
		"header, bad hex":  `{"partition":0,"headers":[["a","zz"]]}`,
		"value is numeric": `{"partition":0,"value":1}`,
	} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read without an error", name)
		}
	}
}
