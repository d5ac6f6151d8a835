//! Texts of the group APIs, to and fro.

use kafka_protocol::protocol::StrBytes;

pub(super) fn text(text: String) -> StrBytes {
    StrBytes::from_string(text)
}

pub(super) fn optional(text: &Option<StrBytes>) -> Option<String> {
    text.as_ref().map(ToString::to_string)
}
