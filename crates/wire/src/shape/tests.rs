//! The table is checked against the message crate, at every version of every API: bytes made from the table
//! must be read by it to the last byte and come out of it unchanged, and what it writes must be walked to its end.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestKind};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::generated::REQUESTS;
use super::of;
use super::reader::Malformed;
use super::schema::{Field, Kind, RequestShape};
use super::walk::Walk;
use crate::{DecodeError, decode_request};

/// Writes random values of a shape and remembers where the lengths are.
struct Generator {
    rng: StdRng,
    version: i16,
    flexible: bool,
    out: Vec<u8>,
    /// Position of each length or count, and its size in bytes (1 for all compact ones).
    lengths: Vec<(usize, usize)>,
}

impl Generator {
    fn body(shape: &RequestShape, version: i16, seed: u64) -> Generator {
        let mut generator = Generator {
            rng: StdRng::seed_from_u64(seed),
            version,
            flexible: shape.is_flexible(version),
            out: Vec::new(),
            lengths: Vec::new(),
        };
        generator.fields(shape.fields);
        generator
    }

    fn fields(&mut self, fields: &[Field]) {
        let version = self.version;
        let present = fields.iter().filter(|field| field.is_in(version));
        let (plain, mut tagged): (Vec<&Field>, Vec<&Field>) = present.partition(|field| field.tag.is_none());
        for field in plain {
            self.field(field);
        }
        if !self.flexible {
            return;
        }
        tagged.sort_by_key(|field| field.tag);
        let unknown = self.rng.random_range(0..3u8);
        self.out.push(tagged.len() as u8 + unknown);
        for field in tagged {
            self.out.push(field.tag.unwrap() as u8);
            let start = self.out.len();
            self.field(field);
            let size = self.out.len() - start;
            assert!(size < 0x80, "needs a size of two bytes");
            self.out.insert(start, size as u8);
            self.lengths.retain(|(position, _)| *position < start);
        }
        for tag in 0..unknown {
            self.out.extend([100 + tag, 2, 7, 7]);
        }
    }

    fn field(&mut self, field: &Field) {
        if field.element_memory.is_none() {
            return self.value(field);
        }
        // An empty array is the default of a tagged field, and defaults are not written.
        let count = self.rng.random_range(usize::from(field.tag.is_some())..4);
        self.length(count, 4);
        (0..count).for_each(|_| self.value(field));
    }

    fn value(&mut self, field: &Field) {
        match field.kind {
            // Booleans come out as 0 or 1.
            Kind::Fixed(1) => self.out.push(1),
            Kind::Fixed(size) => (0..size).for_each(|_| {
                let byte = self.rng.random_range(1..0x7f);
                self.out.push(byte);
            }),
            Kind::String => {
                let length = self.rng.random_range(0..20);
                self.length(length, 2);
                self.out.extend(std::iter::repeat_n(b's', length));
            }
            Kind::Bytes => {
                let length = self.rng.random_range(0..20);
                self.length(length, 4);
                self.out.extend(std::iter::repeat_n(0xfe, length));
            }
            Kind::Structure => self.fields(field.fields),
            Kind::NullableStructure if self.rng.random() => self.out.push(0xff),
            Kind::NullableStructure => {
                self.out.push(1);
                self.fields(field.fields);
            }
        }
    }

    fn length(&mut self, length: usize, classic_size: usize) {
        let size = if self.flexible { 1 } else { classic_size };
        self.lengths.push((self.out.len(), size));
        match size {
            1 => self.out.put_u8(length as u8 + 1),
            2 => self.out.put_i16(length as i16),
            _ => self.out.put_i32(length as i32),
        }
    }
}

fn every_version() -> impl Iterator<Item = (&'static RequestShape, i16)> {
    REQUESTS.iter().flat_map(|shape| (shape.min_version..=shape.max_version).map(move |version| (shape, version)))
}

#[test]
fn keys_are_unique_and_in_order() {
    assert!(REQUESTS.is_sorted_by(|a, b| a.key < b.key));
}

#[test]
fn every_api_of_the_message_crate_is_in_the_table() {
    let keys: Vec<_> = REQUESTS.iter().map(|shape| shape.key).collect();
    assert_eq!(keys, ApiKey::iter().map(|key| key as i16).collect::<Vec<_>>());
    assert!(
        REQUESTS.iter().all(|shape| of(shape.key).unwrap().key == shape.key && shape.has_version(shape.max_version))
    );
}

#[test]
fn flexible_versions_are_those_of_the_message_crate() {
    for (shape, version) in every_version() {
        let key = ApiKey::try_from(shape.key).unwrap();
        let flexible = key.request_header_version(version) == 2;
        assert_eq!(shape.is_flexible(version), flexible, "{key:?} v{version}");
    }
}

#[test]
fn every_api_at_every_version_is_read_as_the_table_says() {
    for (shape, version) in every_version() {
        for seed in 0..100 {
            let body = Generator::body(shape, version, seed).out;
            let name = format!("key {} v{version} seed {seed}", shape.key);
            assert_eq!(shape.check(version, &body), Ok(body.len()), "{name}");
            let request = decode_request(shape.key, version, Bytes::from(body.clone()));
            let request = request.unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut again = BytesMut::new();
            request.encode(&mut again, version).unwrap();
            assert_eq!(again, body, "{name}: {request:?}");
        }
    }
}

#[test]
fn what_the_message_crate_writes_is_walked_to_its_end() {
    for (shape, version) in every_version() {
        let mut body = BytesMut::new();
        (shape.write_default)(&mut body, version).unwrap();
        assert_eq!(shape.check(version, &body), Ok(body.len()), "key {} v{version}", shape.key);
        decode_request(shape.key, version, body.freeze()).unwrap();
        default_elements_are_walked(shape.fields, version, shape.is_flexible(version));
    }
}

/// The elements of arrays, in arrays too: their types are of the same structure as the table says.
fn default_elements_are_walked(fields: &[Field], version: i16, flexible: bool) {
    for field in fields.iter().filter(|field| field.is_in(version)) {
        if let Some(write_default) = field.write_default {
            let mut element = BytesMut::new();
            write_default(&mut element, version).unwrap();
            let mut walk = Walk::new(&element, version, flexible);
            assert_eq!(walk.fields(field.fields), Ok(()), "{} v{version}", field.name);
            assert_eq!(walk.remaining(), 0, "{} v{version}", field.name);
        }
        default_elements_are_walked(field.fields, version, flexible);
    }
}

#[test]
fn cut_messages_are_refused_and_bytes_after_them_ignored() {
    for (shape, version) in every_version() {
        let mut body = Generator::body(shape, version, 7).out;
        for end in 0..body.len() {
            assert!(shape.check(version, &body[..end]).is_err(), "key {} v{version} cut at {end}", shape.key);
        }
        let whole = decode_request(shape.key, version, Bytes::from(body.clone())).unwrap();
        let length = body.len();
        body.extend(b"\0\x01\xff");
        assert_eq!(shape.check(version, &body), Ok(length), "key {} v{version}", shape.key);
        let overlong = decode_request(shape.key, version, Bytes::from(body)).unwrap();
        assert_eq!(overlong, whole, "key {} v{version}", shape.key);
    }
}

/// What librdkafka 2.16 sends for the metadata of all topics and of none, after the request header.
#[test]
fn metadata_requests_of_librdkafka() {
    for (body, all) in [(b"\0\0\0\0\x01\0\0", true), (b"\x01\0\0\0\0\0\0", false)] {
        let request = decode_request(3, 12, Bytes::from_static(body)).unwrap();
        let RequestKind::Metadata(request) = request else { panic!("{request:?}") };
        assert_eq!(request.topics.is_none(), all);
        assert_eq!(request.topics.map_or(0, |topics| topics.len()), 0);
        assert!(!request.allow_auto_topic_creation);
    }
}

#[test]
fn huge_lengths_are_refused_wherever_they_are() {
    for (shape, version) in every_version() {
        for seed in 0..10 {
            let Generator { out, lengths, .. } = Generator::body(shape, version, seed);
            for (position, size) in lengths {
                let huge: &[&[u8]] = match size {
                    1 => &[b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\xff\xff\x7f", b"\xff\xff\xff\xff\xff"],
                    2 => &[b"\x7f\xff", b"\x80\x00", b"\xff\xfe"],
                    _ => &[b"\x7f\xff\xff\xff", b"\x7f\xff\xff\xf0", b"\x80\0\0\0", b"\xff\xff\xff\xfe", b"\0\x10\0\0"],
                };
                for claim in huge {
                    let mut body = out.clone();
                    body.splice(position..position + size, claim.iter().copied());
                    assert!(shape.check(version, &body).is_err(), "key {} v{version} at {position}", shape.key);
                }
            }
        }
    }
}

#[test]
fn what_the_guard_lets_through_never_panics_the_decoder() {
    let mut rng = StdRng::seed_from_u64(1);
    for (shape, version) in every_version() {
        for seed in 0..20 {
            let body = Generator::body(shape, version, seed).out;
            for _ in 0..100 {
                let mut broken = body.clone();
                for _ in 0..rng.random_range(1..4) {
                    if let Some(last) = broken.len().checked_sub(1) {
                        let at = rng.random_range(0..=last);
                        broken[at] = match rng.random_range(0..4) {
                            0 => 0xff,
                            1 => 0,
                            2 => broken[at] ^ (1 << rng.random_range(0..8)),
                            _ => rng.random(),
                        };
                    }
                }
                let guard = shape.check(version, &broken);
                let decoded = decode_request(shape.key, version, Bytes::from(broken));
                if guard.is_err() {
                    assert!(matches!(decoded, Err(DecodeError::Malformed(_))));
                }
            }
        }
    }
}

#[test]
fn small_elements_must_not_swell() {
    // A million empty group names: 2 MiB on the wire, 32 MiB decoded.
    let count = 1 << 20;
    let mut body = Vec::new();
    body.put_i32(count);
    body.put_bytes(0, 2 * count as usize);
    assert_eq!(of(42).unwrap().check(0, &body), Err(Malformed::TooLarge("groups_names")));
    // Half a million unknown tagged fields of no bytes.
    let mut body = b"\x01\xff\xff\x1f".to_vec();
    (0..0x7ffff).for_each(|_| body.extend(b"\x64\0"));
    assert_eq!(of(42).unwrap().check(2, &body), Err(Malformed::TooLarge("tagged fields")));
}

#[test]
fn a_tagged_field_must_be_as_long_as_it_says() {
    let fetch = of(1).unwrap();
    let mut body = vec![0; 4 + 4 + 4 + 4 + 1 + 4 + 4];
    body.extend(b"\x01\x01\x01");
    let with_tag = |field: &[u8]| [&body, field].concat();
    assert_eq!(fetch.check(12, &with_tag(b"\x01\0\x03\x03ab")), Ok(body.len() + 6));
    assert_eq!(fetch.check(12, &with_tag(b"\x01\0\x04\x03ab\0")), Err(Malformed::Invalid("cluster_id")));
    assert_eq!(fetch.check(12, &with_tag(b"\x01\x01\x01\0")), Err(Malformed::Invalid("replica_state")));
}
