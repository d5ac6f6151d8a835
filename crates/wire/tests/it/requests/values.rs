//! Values that requests and responses are filled with.

use kafka_protocol::messages::{GroupId, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

pub(crate) const TOPIC_ID: Uuid = Uuid::from_u128(0x1122_3344_5566_7788_99aa_bbcc_ddee_ff01);

pub(crate) fn text(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

pub(crate) fn topic(name: &'static str) -> TopicName {
    TopicName(text(name))
}

pub(crate) fn group() -> GroupId {
    GroupId(text("group-ü"))
}
