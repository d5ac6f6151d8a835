//! Record headers as pgQueue stores them: a JSON array `[{"key": "...", "v": "<base64>"}]` in the
//! order of the record, duplicates kept; no headers = SQL NULL.
//!
//! Two forms are ours, and pgQueue's clients skip over what they do not know: a null value is an
//! entry without `v`, and a key that `jsonb` cannot hold (not UTF-8, or with a NUL) has its bytes
//! in `kb` beside a readable `key`.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::error::StoreError;

/// One header read from a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
}

impl From<(&[u8], Option<&[u8]>)> for Header {
    fn from((key, value): (&[u8], Option<&[u8]>)) -> Self {
        Self { key: key.to_vec(), value: value.map(<[u8]>::to_vec) }
    }
}

/// Appends the JSON text of `headers` to `out`.
pub(crate) fn encode<'a>(headers: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>, out: &mut String) {
    out.push('[');
    for (i, (key, value)) in headers.enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str("{\"key\":");
        match std::str::from_utf8(key) {
            Ok(text) if !text.contains('\0') => push_json_string(text, out),
            _ => {
                push_json_string(&String::from_utf8_lossy(key).replace('\0', "\u{fffd}"), out);
                out.push_str(",\"kb\":\"");
                STANDARD.encode_string(key, out);
                out.push('"');
            }
        }
        if let Some(value) = value {
            out.push_str(",\"v\":\"");
            STANDARD.encode_string(value, out);
            out.push('"');
        }
        out.push('}');
    }
    out.push(']');
}

fn push_json_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[derive(Deserialize)]
struct JsonHeader {
    #[serde(default)]
    key: String,
    #[serde(default)]
    kb: Option<String>,
    #[serde(default)]
    v: Option<String>,
}

/// Reads the JSON text of a row's `headers`.
///
/// # Errors
/// [`StoreError::Corrupt`] if it is not such an array: rows can be written by SQL.
pub(crate) fn decode(json: &str) -> Result<Vec<Header>, StoreError> {
    let corrupt = |reason: String| StoreError::Corrupt(format!("headers of a message row: {reason}"));
    let entries: Vec<JsonHeader> = serde_json::from_str(json).map_err(|e| corrupt(e.to_string()))?;
    entries
        .into_iter()
        .map(|entry| {
            let bytes = |text: String| STANDARD.decode(text).map_err(|e| corrupt(e.to_string()));
            Ok(Header {
                key: entry.kb.map(bytes).transpose()?.unwrap_or_else(|| entry.key.into_bytes()),
                value: entry.v.map(bytes).transpose()?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(headers: &[Header]) -> Vec<Header> {
        let mut json = String::new();
        encode(headers.iter().map(|h| (h.key.as_slice(), h.value.as_deref())), &mut json);
        decode(&json).unwrap()
    }

    #[test]
    fn the_json_is_what_pgqueue_writes() {
        let mut json = String::new();
        let headers: [(&[u8], Option<&[u8]>); 3] = [(b"a", Some(b"xy")), (b"a\"\\\n", None), (b"", Some(b""))];
        encode(headers.into_iter(), &mut json);
        assert_eq!(json, r#"[{"key":"a","v":"eHk="},{"key":"a\"\\\u000a"},{"key":"","v":""}]"#);
    }

    proptest! {
        #[test]
        fn any_headers_come_back(raw in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..12), prop::option::of(prop::collection::vec(any::<u8>(), 0..12))), 0..6)
        ) {
            let headers: Vec<Header> = raw.into_iter().map(|(key, value)| Header { key, value }).collect();
            prop_assert_eq!(round_trip(&headers), headers);
        }
    }
}
