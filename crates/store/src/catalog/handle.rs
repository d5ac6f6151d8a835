use std::sync::Arc;

use super::{cache::TopicCache, statements::TopicStatements};
use crate::database::Database;

/// Topics and their configuration; cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    pub(super) db: Database,
    pub(super) cache: Arc<TopicCache>,
    pub(super) statements: Arc<TopicStatements>,
}

impl Catalog {
    pub(crate) fn new(db: Database) -> Catalog {
        let cache = Arc::new(TopicCache::new(db.config().catalog_ttl));
        let statements = Arc::new(TopicStatements::new(db.tables()));
        Catalog { db, cache, statements }
    }
}
