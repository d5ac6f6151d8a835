//! Zigzag varints as Kafka writes them inside a record (Kafka: `ByteUtils.java`, `readVarint` and `readVarlong`).
//!
//! A varint is at most 5 bytes and a varlong at most 10. Like Kafka, over-long encodings of a small
//! number are accepted and bits beyond the width of the type are dropped; what never ends is not.

use bytes::BufMut;

/// Reads forward over borrowed bytes; every read either succeeds whole or returns `None`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor { rest: bytes }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// A length-prefixed field; any negative length means null (Kafka: `Utils.readBytes`).
    #[inline]
    pub(super) fn nullable_bytes(&mut self) -> Option<Option<&'a [u8]>> {
        match usize::try_from(self.varint()?) {
            Ok(len) => Some(Some(self.take(len)?)),
            Err(_) => Some(None),
        }
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Option<i32> {
        // Deltas and lengths below 64 fit one byte, which is nearly every varint of a usual batch.
        let (&first, rest) = self.rest.split_first()?;
        let raw = if first < 0x80 {
            self.rest = rest;
            u32::from(first)
        } else {
            self.long_form(5)? as u32
        };
        Some(((raw >> 1) as i32) ^ -((raw & 1) as i32))
    }

    #[inline]
    pub(super) fn varlong(&mut self) -> Option<i64> {
        let (&first, rest) = self.rest.split_first()?;
        let raw = if first < 0x80 {
            self.rest = rest;
            u64::from(first)
        } else {
            self.long_form(10)?
        };
        Some(((raw >> 1) as i64) ^ -((raw & 1) as i64))
    }

    fn long_form(&mut self, max_bytes: usize) -> Option<u64> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().take(max_bytes).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                return Some(value);
            }
        }
        None
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Appends a zigzag varlong; a varint is the same bytes for a value of 32 bits.
#[inline]
pub(super) fn put(buf: &mut impl BufMut, value: i64) {
    let mut raw = zigzag(value);
    while raw >= 0x80 {
        buf.put_u8((raw as u8) | 0x80);
        raw >>= 7;
    }
    buf.put_u8(raw as u8);
}

/// Bytes that [`put`] writes: 1 to 10.
#[inline]
pub(super) fn size(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_round_trip() {
        for shift in 0..64 {
            for value in [1i64 << shift, (1i64 << shift).wrapping_sub(1)] {
                for value in [value, value.wrapping_neg()] {
                    let mut buf = Vec::new();
                    put(&mut buf, value);
                    assert_eq!(buf.len(), size(value));
                    let mut cursor = Cursor::new(&buf);
                    assert_eq!(cursor.varlong(), Some(value));
                    assert!(cursor.is_empty());
                    if let Ok(small) = i32::try_from(value) {
                        assert_eq!(Cursor::new(&buf).varint(), Some(small));
                    }
                }
            }
        }
        assert_eq!(size(0), 1);
        assert_eq!(size(-64), 1);
        assert_eq!(size(64), 2);
        assert_eq!(size(i64::MIN), 10);
    }

    #[test]
    fn unending_and_cut_varints_are_refused_without_moving() {
        let unending = [0xff; 11];
        assert_eq!(Cursor::new(&unending).varint(), None);
        assert_eq!(Cursor::new(&unending).varlong(), None);
        assert_eq!(Cursor::new(&[0x80]).varint(), None);
        assert_eq!(Cursor::new(&[]).varlong(), None);
        // Over-long zero, as a sloppy client may write it.
        assert_eq!(Cursor::new(&[0x80, 0x80, 0x00]).varint(), Some(0));
    }

    #[test]
    fn negative_length_is_null() {
        let mut buf = Vec::new();
        put(&mut buf, -7);
        assert_eq!(Cursor::new(&buf).nullable_bytes(), Some(None));
        assert_eq!(Cursor::new(&[0]).nullable_bytes(), Some(Some(&[][..])));
        assert_eq!(Cursor::new(&[4, 9]).nullable_bytes(), None);
    }
}
