//! What consumer groups leave in the tables: committed offsets, the stored groups, leases on partitions
//! and registrations.

mod handle;
mod leases;
mod offsets;
mod registrations;
mod rows;

pub use handle::Groups;
pub use leases::PartitionHold;
pub use offsets::{Committed, LiveGroup, NewOffset, OffsetCommit, OffsetQuery, StoredOffset, StuckAhead};
pub use registrations::Registration;
pub use rows::{DeletedGroup, StoredGroup};
