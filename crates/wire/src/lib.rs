//! Bytes to Kafka messages and back: no I/O, no clock.
//!
//! A server reads [`FrameHead`], then the frame, then [`RequestHeader`] and [`decode_request`]; it answers
//! with [`encode_response`]. Whatever a peer sends, nothing here panics or allocates out of proportion.

pub mod batch;
mod error_code;
mod frame;
mod header;
mod message;
mod shape;
mod topic_name;

pub use error_code::ErrorCode;
pub use frame::{DEFAULT_MAX_FRAME, DEFAULT_MAX_OTHER_FRAME, FrameError, FrameHead, FrameLimits};
pub use header::RequestHeader;
pub use message::{DecodeError, EncodeError, decode_request, decode_response, encode_request, encode_response};
pub use shape::Malformed;
pub use topic_name::{InvalidTopicName, MAX_TOPIC_NAME_LEN, TopicName};
