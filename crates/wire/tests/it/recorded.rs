//! Requests and record batches that real clients sent (see testdata/README.md).
//!
//! `UPDATE_GOLDEN=1` writes the expected texts anew, to be looked over before they are committed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use kafka_protocol::messages::ApiKey;
use wire::batch::{BatchView, Compression, ProduceLimits, ProducedBatch, Record};
use wire::{DecodeError, FrameHead, FrameLimits, RequestHeader, decode_request, encode_request};

const LIMITS: ProduceLimits = ProduceLimits { max_batch_bytes: 1 << 16, max_decompressed_bytes: 1 << 16 };

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

fn sorted(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).filter(|path| wanted(path)).collect();
    paths.sort();
    paths
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    sorted(parent, Path::is_dir)
}

/// The name without the last extension only where `path` is a file: client names hold dots.
fn name(path: &Path) -> &str {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.unwrap().to_str().unwrap()
}

fn bin_files(folder: &Path) -> Vec<PathBuf> {
    sorted(folder, |path| path.extension().is_some_and(|extension| extension == "bin"))
}

/// Bytes after the message that a client is known to send. librdkafka leaves four bytes for the count of a
/// request for all topics, where the compact null takes one; the three zeros too many are read as the two
/// flags and the tagged fields, and what was meant for those is left over.
fn may_trail(client: &str, key: i16, version: i16) -> &'static [u8] {
    let librdkafka = ["rust-rdkafka", "confluent-kafka", "confluent-kafka-idempotent", "kcat"].contains(&client);
    if librdkafka && key == ApiKey::Metadata as i16 && version >= 9 { &[1, 0, 0] } else { &[] }
}

/// Checks one frame and describes it in a line.
fn check_request(client: &str, file: &str, frame: &Bytes) -> String {
    let head = FrameHead::parse(frame.first_chunk().unwrap()).unwrap();
    assert_eq!(head.size + 4, frame.len(), "{client}/{file}");
    FrameLimits::default().check(&head).unwrap();
    let api = ApiKey::try_from(head.api_key).unwrap();
    assert_eq!(file.trim_end_matches("_longest"), format!("{api:?}_v{}", head.api_version), "{client}");
    let mut body = frame.slice(8..);
    let header = RequestHeader::decode(head.api_key, head.api_version, &mut body)
        .unwrap_or_else(|error| panic!("{client}/{file}: {error}"));
    let RequestHeader { api_key, api_version, correlation_id, client_id } = header;
    let client_id = client_id.as_deref();
    let start = format!("{file}: correlation_id {correlation_id} client_id {client_id:?}");
    let request = match decode_request(api_key, api_version, body) {
        Ok(request) => request,
        // A client may ask for an ApiVersions of the future; whatever else is recorded was answered.
        Err(error @ DecodeError::UnknownVersion { .. }) if api == ApiKey::ApiVersions => {
            return format!("{start} refused: {error}");
        }
        Err(error) => panic!("{client}/{file}: {error}"),
    };
    let mut encoded = encode_request(api_key, api_version, correlation_id, client_id, &request).unwrap().to_vec();
    let trailing = &frame[encoded.len().min(frame.len())..];
    if !trailing.is_empty() {
        assert_eq!(trailing, may_trail(client, api_key, api_version), "{client}/{file}");
        encoded[..4].copy_from_slice(&frame[..4]);
        encoded.extend_from_slice(trailing);
    }
    assert_eq!(Bytes::from(encoded), frame, "{client}/{file}: encoded anew (left), recorded (right)");
    let trailing = if trailing.is_empty() { String::new() } else { format!(" trailing {trailing:?}") };
    format!("{start} {request:?}{trailing}")
}

#[test]
fn requests_decode_and_encode_to_the_same_bytes() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut expected_files = BTreeSet::new();
    for folder in folders(&testdata().join("requests")) {
        let client = name(&folder);
        let mut text = String::new();
        for path in bin_files(&folder) {
            let frame = Bytes::from(fs::read(&path).unwrap());
            writeln!(text, "{}", check_request(client, name(&path), &frame)).unwrap();
        }
        assert!(!text.is_empty(), "{client}: no request recorded");
        let path = testdata().join("expected").join(format!("{client}.txt"));
        if update {
            fs::write(&path, &text).unwrap();
        }
        let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for (line, expected) in text.lines().zip(expected.lines()) {
            assert_eq!(line, expected, "{client}; if this is right, run the test with UPDATE_GOLDEN=1");
        }
        assert_eq!(text.lines().count(), expected.lines().count(), "{client}: files and expected lines");
        expected_files.insert(path);
    }
    let stale = |path: &Path| path.extension().is_some_and(|end| end == "txt") && !expected_files.contains(path);
    assert_eq!(sorted(&testdata().join("expected"), stale), Vec::<PathBuf>::new(), "without a folder of requests");
}

#[test]
fn every_client_of_the_compatibility_tests_is_recorded() {
    let compat_tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compat-tests");
    let mut clients = 0;
    for folder in folders(&compat_tests) {
        let kind = fs::read_to_string(folder.join("kind")).unwrap_or_default();
        let client = name(&folder);
        let recorded = |kind: &str| {
            let folder = testdata().join(kind).join(client);
            assert!(folder.is_dir() && !bin_files(&folder).is_empty(), "{client}: no {kind}; see testdata/README.md");
        };
        match kind.trim() {
            "client" => {
                recorded("requests");
                recorded("batches");
                clients += 1;
            }
            "tools" => recorded("requests"),
            _ => {}
        }
    }
    assert!(clients > 0);
}

fn compression(name: &str) -> Compression {
    match name {
        "none" => Compression::None,
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        other => panic!("{other} is no codec"),
    }
}

fn hex(bytes: Option<&[u8]>) -> String {
    let Some(bytes) = bytes else { return "null".to_owned() };
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

/// A record as record.py writes it, but for the timestamp.
fn json(record: &Record<'_>) -> String {
    let header =
        |(key, value): (&[u8], Option<&[u8]>)| format!("[\"{}\", {}]", std::str::from_utf8(key).unwrap(), hex(value));
    let headers: Vec<_> = record.headers.iter().map(header).collect();
    format!(r#"{{"key": {}, "value": {}, "headers": [{}]"#, hex(record.key), hex(record.value), headers.join(", "))
}

#[test]
fn batches_hold_the_records_that_were_given() {
    for folder in folders(&testdata().join("batches")) {
        let client = name(&folder);
        let path = testdata().join("expected").join(format!("{client}.jsonl"));
        let given = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for path in bin_files(&folder) {
            let what = format!("{client}/{}", name(&path));
            let bytes = Bytes::from(fs::read(&path).unwrap());
            let mut given = given.lines();
            let mut codecs = Vec::new();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (view, tail) = BatchView::parse(rest).unwrap_or_else(|error| panic!("{what}: {error}"));
                rest = tail;
                let batch = ProducedBatch::validate(bytes.slice_ref(view.bytes()), LIMITS)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                codecs.push(batch.header.compression().unwrap());
                for record in batch.records() {
                    let (fields, timestamp) = given.next().unwrap().rsplit_once(", \"timestamp\": ").unwrap();
                    assert_eq!(json(&record), fields, "{what}");
                    // null: the client cannot be given one.
                    if timestamp != "null}" {
                        assert_eq!(format!("{}}}", batch.timestamp(&record)), timestamp, "{what}");
                    }
                }
            }
            assert_eq!(given.next(), None, "{what}");
            let codec = compression(name(&path));
            assert!(codecs.contains(&codec), "{what}: {codecs:?}");
            // Clients send a batch that would not get smaller as it is.
            assert!(codecs.iter().all(|used| [codec, Compression::None].contains(used)), "{what}: {codecs:?}");
        }
    }
}
