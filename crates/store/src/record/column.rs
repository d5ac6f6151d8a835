//! Values of columns in the two ways in which rows are sent: in COPY's binary format, and as arrays.

use bytes::{BufMut, BytesMut};

use crate::offset::Seq;

/// The version that Postgres expects before the text of a jsonb.
const JSONB_VERSION: u8 = 1;

/// JSON text for a column of jsonb.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Json<'a>(pub(crate) &'a str);

/// A value that a column may have.
pub(super) trait Column {
    /// The same, for an array.
    type Owned;

    /// Its length and its bytes.
    fn put(&self, out: &mut BytesMut);

    fn owned(&self) -> Self::Owned;
}

impl<T: Column> Column for Option<T> {
    type Owned = Option<T::Owned>;

    fn put(&self, out: &mut BytesMut) {
        match self {
            Some(value) => value.put(out),
            None => out.put_i32(-1),
        }
    }

    fn owned(&self) -> Option<T::Owned> {
        self.as_ref().map(T::owned)
    }
}

macro_rules! number_columns {
    ($($type:ty, $put:ident;)+) => {
        $(impl Column for $type {
            type Owned = $type;

            fn put(&self, out: &mut BytesMut) {
                out.put_i32(size_of::<$type>() as i32);
                out.$put(*self);
            }

            fn owned(&self) -> $type {
                *self
            }
        })+
    };
}

number_columns! {
    i16, put_i16;
    i32, put_i32;
    i64, put_i64;
}

impl Column for Seq {
    type Owned = i64;

    fn put(&self, out: &mut BytesMut) {
        self.get().put(out);
    }

    fn owned(&self) -> i64 {
        self.get()
    }
}

impl Column for &[u8] {
    type Owned = Vec<u8>;

    fn put(&self, out: &mut BytesMut) {
        out.put_i32(self.len() as i32);
        out.put_slice(self);
    }

    fn owned(&self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Column for &str {
    type Owned = String;

    fn put(&self, out: &mut BytesMut) {
        self.as_bytes().put(out);
    }

    fn owned(&self) -> String {
        (*self).to_owned()
    }
}

impl Column for Json<'_> {
    type Owned = String;

    fn put(&self, out: &mut BytesMut) {
        out.put_i32(self.0.len() as i32 + size_of_val(&JSONB_VERSION) as i32);
        out.put_u8(JSONB_VERSION);
        out.put_slice(self.0.as_bytes());
    }

    fn owned(&self) -> String {
        self.0.to_owned()
    }
}
