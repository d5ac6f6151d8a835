//! A record as a line of JSON, its bytes in hexadecimal.

use serde_json::{Value, json};

pub type Bytes = Option<Vec<u8>>;

pub struct Record {
    pub partition: i32,
    pub key: Bytes,
    pub value: Bytes,
    pub headers: Vec<(String, Bytes)>,
    /// CreateTime, ms since 1970.
    pub timestamp: i64,
}

impl Record {
    /// `None` where the line is not a record.
    pub fn parse(line: &str) -> Option<Record> {
        let fields: Value = serde_json::from_str(line).ok()?;
        let header = |header: &Value| Some((header[0].as_str()?.to_owned(), from_hex(&header[1])?));
        Some(Record {
            partition: fields["partition"].as_i64()?.try_into().ok()?,
            key: from_hex(&fields["key"])?,
            value: from_hex(&fields["value"])?,
            headers: fields["headers"].as_array()?.iter().map(header).collect::<Option<_>>()?,
            timestamp: fields["timestamp"].as_i64()?,
        })
    }

    pub fn to_line(&self, offset: i64) -> String {
        let header = |(name, value): &(String, Bytes)| json!([name, to_hex(value)]);
        json!({
            "partition": self.partition,
            "offset": offset,
            "key": to_hex(&self.key),
            "value": to_hex(&self.value),
            "headers": self.headers.iter().map(header).collect::<Vec<_>>(),
            "timestamp": self.timestamp,
        })
        .to_string()
    }
}

/// The outer `None`: neither null nor hexadecimal.
fn from_hex(field: &Value) -> Option<Bytes> {
    if field.is_null() {
        return Some(None);
    }
    let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let digits = field.as_str()?.as_bytes();
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>().map(Some)
}

pub fn to_hex(bytes: &Bytes) -> Value {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let Some(bytes) = bytes else {
        return Value::Null;
    };
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    Value::String(digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect())
}
