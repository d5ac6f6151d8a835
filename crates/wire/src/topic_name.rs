use std::borrow::Borrow;
use std::fmt;

use thiserror::Error;

/// Longest topic name in bytes (Kafka: `Topic.MAX_NAME_LENGTH`).
pub const MAX_TOPIC_NAME_LEN: usize = 249;

/// A topic name that Kafka would accept (Kafka: `Topic.validate`): 1 to 249 characters of
/// `[a-zA-Z0-9._-]`, neither "." nor "..".
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(String);

/// Why a string is no topic name; the text is fit for an error message to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidTopicName {
    #[error("the topic name is empty")]
    Empty,
    #[error("the topic name is {0} bytes long, longer than {MAX_TOPIC_NAME_LEN}")]
    TooLong(usize),
    #[error("a topic cannot be called \".\" or \"..\"")]
    Dots,
    #[error("the topic name has a character other than ASCII letters, digits, '.', '_' and '-'")]
    Character,
}

impl TopicName {
    /// # Errors
    /// [`InvalidTopicName`] names the first rule that the name breaks.
    pub fn parse(name: &str) -> Result<Self, InvalidTopicName> {
        match name {
            "" => return Err(InvalidTopicName::Empty),
            "." | ".." => return Err(InvalidTopicName::Dots),
            _ => {}
        }
        if name.len() > MAX_TOPIC_NAME_LEN {
            return Err(InvalidTopicName::TooLong(name.len()));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if name.bytes().all(allowed) { Ok(TopicName(name.to_owned())) } else { Err(InvalidTopicName::Character) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Two different names with the same key collide (Kafka: `Topic.hasCollision`): metric names replace
    /// '.' by '_', so that Kafka refuses to create the second one.
    pub fn collision_key(&self) -> String {
        self.0.replace('.', "_")
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for TopicName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kafkas_rules() {
        let longest = "a".repeat(MAX_TOPIC_NAME_LEN);
        for good in ["a", "orders.v1_x-Y9", "...", "-", &longest] {
            assert_eq!(TopicName::parse(good).map(TopicName::into_string), Ok(good.to_owned()));
        }
        assert_eq!(TopicName::parse(""), Err(InvalidTopicName::Empty));
        assert_eq!(TopicName::parse("."), Err(InvalidTopicName::Dots));
        assert_eq!(TopicName::parse(".."), Err(InvalidTopicName::Dots));
        assert_eq!(TopicName::parse(&"a".repeat(250)), Err(InvalidTopicName::TooLong(250)));
        for bad in ["a b", "a/b", "ä", "a\0", "a\n", "a:b"] {
            assert_eq!(TopicName::parse(bad), Err(InvalidTopicName::Character), "{bad:?}");
        }
    }

    #[test]
    fn dots_and_underscores_collide() {
        let key = |name| TopicName::parse(name).unwrap().collision_key();
        assert_eq!(key("a.b_c"), key("a_b.c"));
        assert_ne!(key("a.b"), key("a-b"));
    }
}
