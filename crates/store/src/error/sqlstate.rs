//! SQLSTATEs and their kinds. What may pass later is no fault of the request, however long it takes: a
//! password that was changed, a full disk. What a row or a trigger causes is one.

use super::store_error::StoreError;

/// The kind of an error with this SQLSTATE; `routine` is the function in Postgres' source that raised
/// it, which unlike the message is never translated.
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
pub(super) fn kind(sqlstate: &str, routine: &str) -> fn(String) -> StoreError {
    match (sqlstate, routine) {
        // cached plan must not change result type: another gateway has replaced a function
        ("0A000", "RevalidateCachedQuery") => StoreError::Unavailable,
        // invalid_binary_representation, bad_copy_file_format: what is wrong is the encoder
        ("22P03" | "22P04", _) => StoreError::Other,
        // foreign_key_violation: a statement joins what its rows refer to, so that was deleted in the
        // same moment
        ("23503", _) => StoreError::Contended,
        ("23505", _) => StoreError::AlreadyExists, // unique_violation
        // check_violation is also what a row without a partition is
        ("23514", "ExecFindPartition") => StoreError::NoTimePartition,
        // invalid_sql_statement_name, invalid_cursor_name, duplicate_prepared_statement: a pooler in
        // transaction mode does not keep track of prepared statements (B053)
        ("26000" | "34000" | "42P05", _) => behind_pooler,
        ("40003", _) => StoreError::Unavailable, // statement_completion_unknown
        ("42501", _) => StoreError::Denied,      // insufficient_privilege
        // undefined_column, undefined_object, undefined_function, undefined_table, wrong_object_type,
        // invalid_column_reference (a unique key that ON CONFLICT needs)
        ("42703" | "42704" | "42883" | "42P01" | "42809" | "42P10", _) => StoreError::SchemaNotReady,
        // object_not_in_prerequisite_state (a table in a publication without replica identity),
        // object_in_use
        ("55000" | "55006", _) => StoreError::Unavailable,
        ("55P03", _) => StoreError::Contended,         // lock_not_available
        ("XX001" | "XX002", _) => StoreError::Corrupt, // data_corrupted, index_corrupted
        _ => kind_of_class(sqlstate.get(..2).unwrap_or_default()),
    }
}

fn kind_of_class(class: &str) -> fn(String) -> StoreError {
    match class {
        // Connection Exception; Invalid Transaction State (a read-only server, B027; a transaction that
        // was ended for its age); Insufficient Resources; Operator Intervention (a shutdown, an idle
        // session, a cancelled query); System Error (a disk); Configuration File Error; Foreign Data
        // Wrapper Error (a time partition that is a foreign table)
        "08" | "25" | "53" | "57" | "58" | "F0" | "HV" => StoreError::Unavailable,
        // Transaction Rollback, Snapshot Failure
        "40" | "72" => StoreError::Contended,
        // Invalid Authorization Specification (a password that was changed), Invalid Catalog Name (a
        // database that is gone)
        "28" | "3D" => StoreError::Denied,
        // Invalid Schema Name
        "3F" => StoreError::SchemaNotReady,
        "XX" => StoreError::Internal,
        // SQL Statement Not Yet Complete, Feature Not Supported, Invalid Transaction Initiation, Invalid
        // Role Specification, Invalid Cursor State, Dependent Privilege Descriptors Still Exist, Invalid
        // Transaction Termination, Savepoint Exception, Syntax Error or Access Rule Violation, Object Not
        // In Prerequisite State: nothing that the gateway's statements do in its own schema
        "03" | "0A" | "0B" | "0P" | "24" | "2B" | "2D" | "3B" | "42" | "55" => StoreError::Other,
        // All others are about what a row holds (Data Exception 22, Integrity Constraint Violation 23,
        // Program Limit Exceeded 54 …), or come from a trigger and what it calls (PL/pgSQL Error P0,
        // External Routine Exception 38 …), which may make up classes of its own.
        _ => StoreError::Refused,
    }
}

fn behind_pooler(message: String) -> StoreError {
    StoreError::Unavailable(format!(
        "{message}; a pooler in transaction mode must keep track of prepared statements \
         (PgBouncer 1.21 or later with max_prepared_statements above 0)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each class of the appendix of PostgreSQL 18 at least once, and each state that is not as its class.
    const STATES: [(&str, &[&str]); 10] = [
        (
            "Unavailable",
            &[
                "08000", "08001", "08003", "08004", "08006", "08007", "08P01", "25000", "25001", "25006", "25P02",
                "25P03", "25P04", "26000", "34000", "40003", "42P05", "53000", "53100", "53200", "53300", "53400",
                "55000", "55006", "57000", "57014", "57P01", "57P02", "57P03", "57P04", "57P05", "58000", "58030",
                "58P01", "58P02", "F0000", "F0001", "HV000", "HV00N",
            ],
        ),
        ("Contended", &["23503", "40000", "40001", "40002", "40P01", "55P03", "72000"]),
        ("Internal", &["XX000"]),
        ("SchemaNotReady", &["3F000", "42703", "42704", "42809", "42883", "42P01", "42P10"]),
        ("Denied", &["28000", "28P01", "3D000", "42501"]),
        (
            "Refused",
            &[
                "00000", "01000", "02000", "09000", "0F000", "0L000", "0Z000", "10608", "20000", "21000", "22000",
                "22001", "22021", "22P02", "22P05", "23000", "23001", "23502", "23514", "23P01", "27000", "2F000",
                "38000", "39000", "44000", "54000", "54001", "P0000", "P0001", "P0002", "P0003", "P0004", "ABC01", "",
            ],
        ),
        ("AlreadyExists", &["23505"]),
        ("Corrupt", &["XX001", "XX002"]),
        (
            "Other",
            &[
                "03000", "0A000", "0B000", "0P000", "22P03", "22P04", "24000", "2B000", "2D000", "3B000", "42000",
                "42601", "42804", "42P07", "42P17", "55P02", "55P04",
            ],
        ),
        ("InvalidConfig", &[]),
    ];

    #[test]
    fn every_class_of_sqlstates_says_what_the_caller_can_do() {
        for (name, states) in STATES {
            for state in states {
                let error = kind(state, "")(String::new());
                assert!(format!("{error:?}").starts_with(&format!("{name}(")), "{state}: {error:?}, not {name}");
                let (retriable, by_itself) = match name {
                    "Unavailable" | "Contended" | "Internal" => (true, true),
                    "SchemaNotReady" | "Denied" => (true, false),
                    _ => (false, false),
                };
                assert_eq!((error.is_retriable(), error.passes_by_itself()), (retriable, by_itself), "{state}");
            }
        }
    }

    #[test]
    fn one_state_that_means_two_things_is_told_apart_by_the_routine() {
        let missing = kind("23514", "ExecFindPartition")("keine Partition".to_owned());
        assert!(matches!(missing, StoreError::NoTimePartition(_)) && missing.passes_by_itself());
        assert!(matches!(kind("23514", "ExecConstraints")(String::new()), StoreError::Refused(_)));
        assert!(matches!(kind("0A000", "RevalidateCachedQuery")(String::new()), StoreError::Unavailable(_)));
    }
}
