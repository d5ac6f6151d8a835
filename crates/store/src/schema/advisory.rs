use sha2::{Digest, Sha256};

use crate::database::Tables;

/// Key of an advisory lock of these tables that can be no partition's: those are not negative.
pub(super) fn advisory_key(tables: &Tables, purpose: &str) -> i64 {
    let name = format!("pgqueue-gateway {purpose} of {}.{}", tables.schema, tables.prefix);
    let digest = Sha256::digest(name.as_bytes());
    let first = digest.iter().take(8).fold(0_i64, |key, byte| (key << 8) | i64::from(*byte));
    first | i64::MIN
}
