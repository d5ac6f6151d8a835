//! The columns of message that hold a record. A new column is one line here: in [`Row`]'s list if the
//! gateway writes it, in [`RecordColumns`]' if it reads it.

use std::sync::LazyLock;

use bytes::{BufMut, BytesMut};
use sqlx::{Column as _, Row as _, postgres::PgRow};

use super::column::{Column, Json};
use crate::{database::Statement, error::StoreError, offset::Seq, partition::PartitionKey};

macro_rules! row_columns {
    ($($(#[$doc:meta])* $field:ident: $type:ty, $owned:ty, $column:literal, $array:literal;)+) => {
        /// A row to be written. Columns that are not here take their defaults: `id`, `enqueued_at`,
        /// `priority`, `content_type_id`.
        pub(crate) struct Row<'a> {
            pub(crate) partition: PartitionKey,
            $($(#[$doc])* pub(crate) $field: $type,)+
        }

        /// Their names, as every statement that writes rows lists them.
        pub(crate) const ROW_COLUMNS: &str = concat!("topic_id, partition_id", $(", ", $column),+);

        /// For each of them the type of an array of its values, as a parameter is cast to.
        const ARRAYS: &[&str] = &["bigint[]", "int[]", $($array),+];

        impl Row<'_> {
            /// As a tuple of `COPY … (FORMAT binary)`.
            pub(crate) fn copy_to(&self, out: &mut BytesMut) {
                out.put_i16(ARRAYS.len() as i16);
                self.partition.topic_id.put(out);
                self.partition.partition_id.put(out);
                $(self.$field.put(out);)+
            }
        }

        /// Rows as arrays, one for each column.
        #[derive(Default)]
        pub(crate) struct RowArrays {
            topic_id: Vec<i64>,
            partition_id: Vec<i32>,
            $($field: Vec<$owned>,)+
        }

        impl RowArrays {
            pub(crate) fn push(&mut self, row: &Row<'_>) {
                self.topic_id.push(row.partition.topic_id);
                self.partition_id.push(row.partition.partition_id);
                $(self.$field.push(row.$field.owned());)+
            }

            /// As the parameters of [`ROW_ARRAYS`].
            pub(crate) fn bind<'q>(self, statement: Statement<'q>) -> Statement<'q> {
                statement.bind(self.topic_id).bind(self.partition_id)$(.bind(self.$field))+
            }
        }
    };
}

// Field, type, type in an array, column, type of the array in SQL.
row_columns! {
    seq: Seq, i64, "enqueue_seq", "bigint[]";
    routing_key: &'a str, String, "routing_key", "text[]";
    payload: &'a [u8], Vec<u8>, "payload", "bytea[]";
    payload_compression: i16, i16, "payload_compression", "smallint[]";
    headers: Option<Json<'a>>, Option<String>, "headers", "text[]::jsonb[]";
    key: Option<&'a [u8]>, Option<Vec<u8>>, "kafka_key", "bytea[]";
    flags: Option<i16>, Option<i16>, "kafka_flags", "smallint[]";
    timestamp: Option<i64>, Option<i64>, "kafka_timestamp", "bigint[]";
    max_timestamp: Option<i64>, Option<i64>, "kafka_max_timestamp", "bigint[]";
    /// This and the following: of the last row of an idempotent producer's batch.
    producer_id: Option<i64>, Option<i64>, "kafka_producer_id", "bigint[]";
    producer_epoch: Option<i16>, Option<i16>, "kafka_producer_epoch", "smallint[]";
    base_sequence: Option<i32>, Option<i32>, "kafka_base_sequence", "int[]";
    batch_records: Option<i32>, Option<i32>, "kafka_batch_records", "int[]";
}

/// The number of the first parameter that [`RowArrays::bind`] binds.
const FIRST_ROW_PARAMETER: usize = 5;

/// Rows from parameters, in a FROM clause.
pub(crate) static ROW_ARRAYS: LazyLock<String> = LazyLock::new(|| {
    let parameters = ARRAYS.iter().zip(FIRST_ROW_PARAMETER..).map(|(array, number)| format!("${number}::{array}"));
    format!("unnest({}) AS r({ROW_COLUMNS})", parameters.collect::<Vec<_>>().join(", "))
});

macro_rules! record_columns {
    ($($field:ident: $sql:literal;)+) => {
        /// Where the columns of [`RECORD_COLUMNS`] stand in a result, found by their names once.
        pub(crate) struct RecordColumns {
            pub(super) seq: usize,
            $(pub(super) $field: usize,)+
        }

        /// What is read of a row `m` of message to make a record of it.
        pub(crate) const RECORD_COLUMNS: &str =
            concat!("m.enqueue_seq AS seq", $(", ", $sql, " AS ", stringify!($field)),+);

        impl RecordColumns {
            /// Of the result that this row is in.
            ///
            /// # Errors
            /// If the statement did not select [`RECORD_COLUMNS`].
            pub(crate) fn of(row: &PgRow) -> Result<RecordColumns, StoreError> {
                Ok(RecordColumns {
                    seq: row.try_column("seq")?.ordinal(),
                    $($field: row.try_column(stringify!($field))?.ordinal(),)+
                })
            }
        }
    };
}

record_columns! {
    timestamp: "coalesce(m.kafka_timestamp, {enqueued_ms})";
    flags: "m.kafka_flags";
    routing_key: "m.routing_key";
    key: "m.kafka_key";
    payload: "m.payload";
    payload_compression: "m.payload_compression";
    headers: "m.headers::text";
}

/// A row's `enqueued_at` in milliseconds, rounded down; exact, since `extract` is numeric.
pub(crate) const ENQUEUED_MS: &str = "floor(extract(epoch from m.enqueued_at) * 1000)::bigint";

/// Bits of `kafka_flags`; NULL means none of them.
pub(super) mod flags {
    pub(crate) const NULL_KEY: i16 = 1;
    pub(crate) const NULL_VALUE: i16 = 2;
    /// The key is in `kafka_key`; `routing_key` only shows it.
    pub(crate) const KEY_IN_BYTES: i16 = 4;
    /// The topic had `message.timestamp.type=LogAppendTime`: the timestamp is `enqueued_at`.
    pub(crate) const LOG_APPEND_TIME: i16 = 8;
}

/// Values of `payload_compression`.
pub(super) const PLAIN: i16 = 0;
pub(super) const SNAPPY: i16 = 1;
