use std::sync::Arc;

use super::cache::TopicCache;
use crate::database::Database;

/// Topics and their configuration; cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    pub(super) db: Database,
    pub(super) cache: Arc<TopicCache>,
}

impl Catalog {
    pub(crate) fn new(db: Database) -> Catalog {
        let cache = Arc::new(TopicCache::new(db.config().catalog_ttl));
        Catalog { db, cache }
    }
}
