//! What a request consists of, and the words that the table of all requests is written in.

#[cfg(test)]
use bytes::BytesMut;
use kafka_protocol::protocol::{Encodable, Request};

/// All fields of one request in the order of the wire, for all versions that are decoded.
#[derive(Debug)]
pub(crate) struct RequestShape {
    pub(super) key: i16,
    pub(super) min_version: i16,
    pub(super) max_version: i16,
    /// First version with compact lengths and tagged fields (KIP-482).
    flexible_from: i16,
    pub(super) fields: &'static [Field],
    #[cfg(test)]
    pub(super) write_default: WriteDefault,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// As in Kafka's definition, in snake case.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Of a structure.
    pub(super) fields: &'static [Field],
    /// For an array: the size of a decoded element in memory. `None` for a single value.
    pub(super) element_memory: Option<usize>,
    pub(super) tag: Option<u32>,
    min_version: i16,
    max_version: i16,
    /// For an array of structures.
    #[cfg(test)]
    pub(super) write_default: Option<WriteDefault>,
}

/// Of a value, or of the elements of an array.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// A number of this many bytes, a boolean or a UUID.
    Fixed(u8),
    String,
    Bytes,
    Structure,
    /// A byte tells whether it is there.
    NullableStructure,
}

impl RequestShape {
    pub(crate) fn has_version(&self, version: i16) -> bool {
        (self.min_version..=self.max_version).contains(&version)
    }

    /// The version is known and has compact lengths and tagged fields, in the header too.
    pub(crate) fn is_flexible(&self, version: i16) -> bool {
        self.has_version(version) && version >= self.flexible_from
    }

    pub(super) const fn flexible_from(mut self, version: i16) -> RequestShape {
        self.flexible_from = version;
        self
    }

    pub(super) const fn fields(mut self, fields: &'static [Field]) -> RequestShape {
        self.fields = fields;
        self
    }
}

impl Field {
    pub(super) fn is_in(&self, version: i16) -> bool {
        (self.min_version..=self.max_version).contains(&version)
    }

    pub(super) const fn from(mut self, version: i16) -> Field {
        self.min_version = version;
        self
    }

    pub(super) const fn until(mut self, version: i16) -> Field {
        self.max_version = version;
        self
    }

    pub(super) const fn tagged(mut self, tag: u32) -> Field {
        self.tag = Some(tag);
        self
    }

    pub(super) const fn of(mut self, fields: &'static [Field]) -> Field {
        self.fields = fields;
        self
    }
}

/// A request in the versions that are in the given range and known to the message crate.
pub(super) const fn request<R: Request + Default>(min_version: i16, max_version: i16) -> RequestShape {
    RequestShape {
        key: R::KEY,
        min_version: if min_version > R::VERSIONS.min { min_version } else { R::VERSIONS.min },
        max_version: if max_version < R::VERSIONS.max { max_version } else { R::VERSIONS.max },
        flexible_from: i16::MAX,
        fields: &[],
        #[cfg(test)]
        write_default: write_default::<R>,
    }
}

const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        fields: &[],
        element_memory: None,
        tag: None,
        min_version: 0,
        max_version: i16::MAX,
        #[cfg(test)]
        write_default: None,
    }
}

macro_rules! simple_fields {
    ($($name:ident: $kind:expr;)*) => {
        $(pub(super) const fn $name(name: &'static str) -> Field {
            field(name, $kind)
        })*
    };
}

simple_fields! {
    boolean: Kind::Fixed(1);
    int8: Kind::Fixed(1);
    int16: Kind::Fixed(2);
    uint16: Kind::Fixed(2);
    int32: Kind::Fixed(4);
    int64: Kind::Fixed(8);
    float64: Kind::Fixed(8);
    uuid: Kind::Fixed(16);
    string: Kind::String;
    bytes: Kind::Bytes;
    structure: Kind::Structure;
    nullable_structure: Kind::NullableStructure;
}

/// An array of such elements; `T` is what the message crate makes of one.
pub(super) const fn array<T>(mut element: Field) -> Field {
    element.element_memory = Some(size_of::<T>());
    element
}

/// An array of structures; `T` is what the message crate makes of one.
pub(super) const fn structures<T: Encodable + Default>(name: &'static str) -> Field {
    let array = array::<T>(structure(name));
    #[cfg(test)]
    let array = Field { write_default: Some(write_default::<T>), ..array };
    array
}

/// Has the message crate write the default of a type; fails at a version that the type does not have.
#[cfg(test)]
type WriteDefault = fn(&mut BytesMut, i16) -> Result<(), String>;

#[cfg(test)]
fn write_default<T: Encodable + Default>(out: &mut BytesMut, version: i16) -> Result<(), String> {
    T::default().encode(out, version).map_err(|error| format!("{error:#}"))
}
