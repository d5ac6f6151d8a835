//! Which texts of clients the database can hold: none with NUL, and in another encoding than UTF8
//! only what that has. Postgres would refuse the whole statement.

use std::borrow::Cow;

/// Of the database's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// UTF8, and SQL_ASCII, which takes UTF-8 as it comes.
    Unicode,
    /// LATIN1: U+0001 to U+00FF.
    Latin1,
    /// Any other: no more than ASCII is relied on.
    Ascii,
}

impl Encoding {
    /// By Postgres's name for it.
    pub(super) fn named(server_encoding: &str) -> Encoding {
        match server_encoding {
            "UTF8" | "SQL_ASCII" => Encoding::Unicode,
            "LATIN1" => Encoding::Latin1,
            _ => Encoding::Ascii,
        }
    }

    pub(crate) fn holds(self, text: &str) -> bool {
        // Most texts, and quicker than character by character.
        (text.is_ascii() && !text.contains('\0')) || text.chars().all(|c| self.holds_char(c))
    }

    fn holds_char(self, c: char) -> bool {
        let last = match self {
            Encoding::Unicode => char::MAX,
            Encoding::Latin1 => '\u{ff}',
            Encoding::Ascii => '\u{7f}',
        };
        ('\u{1}'..=last).contains(&c)
    }

    /// The text for people to read: characters that cannot be held are written as `\u{0}`.
    pub(crate) fn readable(self, text: &str) -> Cow<'_, str> {
        if self.holds(text) {
            return Cow::Borrowed(text);
        }
        let mut readable = String::with_capacity(text.len() + 8);
        for c in text.chars() {
            match self.holds_char(c) {
                true => readable.push(c),
                false => readable.extend(c.escape_unicode()),
            }
        }
        Cow::Owned(readable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_encoding_holds_and_how_the_rest_is_written() {
        let text = "aä😀\0";
        for (name, readable) in [
            ("UTF8", r"aä😀\u{0}"),
            ("SQL_ASCII", r"aä😀\u{0}"),
            ("LATIN1", r"aä\u{1f600}\u{0}"),
            ("EUC_JP", r"a\u{e4}\u{1f600}\u{0}"),
        ] {
            let encoding = Encoding::named(name);
            assert!(!encoding.holds(text), "{name}");
            assert_eq!(encoding.readable(text), readable, "{name}");
            assert!(encoding.holds(&encoding.readable(text)), "{name}");
            assert!(matches!(encoding.readable("plain"), Cow::Borrowed("plain")));
        }
    }
}
