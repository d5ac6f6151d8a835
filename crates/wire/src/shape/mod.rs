//! Walks over a request before the message crate decodes it.
//!
//! The message crate allocates what an array claims to hold (`Vec::with_capacity` of up to 2^32 elements)
//! before it reads the first element, so four bytes of a stranger could end the process. Here each request
//! is a small table of fields ([`generated`], made from Kafka's message definitions), and
//! [`RequestShape::check`] follows it through the bytes without allocating. It makes sure that
//! - every length and count fits into the bytes that are there,
//! - the elements and unknown tagged fields, as large as they are in memory, stay below a limit.
//!
//! Bytes after the message are let pass, as Apache Kafka lets them: librdkafka (2.16 still) sends three with
//! each Metadata request of version 9 and later that names no topics, because it leaves four bytes for a
//! compact count of one.
//!
//! Null is not checked: the message crate refuses it where it is not allowed.

mod generated;
mod reader;
mod schema;
mod walk;

pub use reader::Malformed;
pub(crate) use reader::Reader;
use schema::RequestShape;

/// The shape of an API's requests, if this crate decodes them. Whether a gateway serves them is not asked here.
pub(crate) fn of(api_key: i16) -> Option<&'static RequestShape> {
    let requests = generated::REQUESTS;
    requests.binary_search_by_key(&api_key, |shape| shape.key).ok().and_then(|at| requests.get(at))
}

#[cfg(test)]
mod tests;
