//! Texts of statements: each one filled once, when its component is made, so that a connection
//! prepares it once (the driver's cache goes by the text).

use std::sync::Arc;

use sqlx::{AssertSqlSafe, Postgres, postgres::PgArguments, query::Query};

use super::tables::Tables;

/// A statement that lacks its parameters.
pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// A struct with a function for each statement; the struct is made of the names of the tables.
///
/// ```ignore
/// statements! {
///     /// Of the stored groups.
///     pub(super) struct GroupStatements where fence = FENCE;
///
///     /// ($1 slot, $2 fencing, $3 group id) → nothing.
///     delete_group: "WITH {fence} DELETE FROM {kafka_group} USING fence WHERE group_id = $3";
///     /// ($1 slots) → group_id, state.
///     load_groups: include_str!("load_groups.sql");
/// }
/// ```
///
/// A `{token}` is a name of [`Tables`] or a fragment that is named after `where`; fragments may have
/// tokens too. What is in braces and neither of both fails a test that the macro makes.
macro_rules! statements {
    (
        $(#[$meta:meta])* $vis:vis struct $statements:ident $(where $($fragment:ident = $text:expr),+)?;
        $($(#[$doc:meta])* $name:ident: $sql:expr;)+
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $statements {
            $($name: std::sync::Arc<str>,)+
        }

        impl $statements {
            $vis fn new(tables: &$crate::database::Tables) -> Self {
                let fragments: &[(&str, &str)] = &[$($((stringify!($fragment), $text)),+)?];
                Self { $($name: $crate::database::fill($sql, tables, fragments).into(),)+ }
            }

            $($(#[$doc])* $vis fn $name<'q>(&self) -> $crate::database::Statement<'q> {
                $crate::database::prepared(&self.$name)
            })+
        }

        #[cfg(test)]
        mod statements_are_filled {
            /// And no character that another encoding than UTF8 lacks.
            #[test]
            fn no_token_is_left() {
                let tables = $crate::database::Tables::new("q", "mq").unwrap();
                let statements = super::$statements::new(&tables);
                $(assert_eq!($crate::database::token(&statements.$name), None, stringify!($name));)+
                $(assert!(statements.$name.is_ascii(), stringify!($name));)+
            }
        }
    };
}

pub(crate) use statements;

/// Prepared on the first use by a connection, and found again by its text.
pub(crate) fn prepared<'q>(sql: &Arc<str>) -> Statement<'q> {
    sqlx::query(AssertSqlSafe(Arc::clone(sql)))
}

/// Puts in fragments and names of tables for the tokens of `sql`. A token that is neither stays.
pub(crate) fn fill(sql: &str, tables: &Tables, fragments: &[(&str, &str)]) -> String {
    let mut filled = String::with_capacity(sql.len() * 2);
    let mut rest = sql;
    while let Some(name) = token(rest) {
        let (before, from) = rest.split_once(&format!("{{{name}}}")).unwrap_or((rest, ""));
        filled.push_str(before);
        match fragments.iter().find(|(fragment, _)| *fragment == name) {
            Some((_, text)) => filled.push_str(&fill(text, tables, fragments)),
            None => match tables.by_token(name) {
                Some(table) => filled.push_str(table),
                None => filled.push_str(&format!("{{{name}}}")),
            },
        }
        rest = from;
    }
    filled.push_str(rest);
    filled
}

/// The first name in braces; `'{}'` and `'{1,2}'` are arrays of SQL.
pub(crate) fn token(sql: &str) -> Option<&str> {
    let names = sql.split('{').skip(1).filter_map(|from| from.split_once('}')).map(|(name, _)| name);
    names.into_iter().find(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_names_of_tables_and_fragments_with_tokens() {
        let tables = Tables::new("q", "mq").unwrap();
        let fragments = [("fence", "fence AS (SELECT FROM {kafka_node} WHERE {live})"), ("live", "true")];
        let filled = fill("WITH {fence} SELECT '{}'::int[], '{1}' FROM {message}, {nothing}", &tables, &fragments);
        assert_eq!(
            filled,
            "WITH fence AS (SELECT FROM \"q\".mq_kafka_node WHERE true) SELECT '{}'::int[], '{1}' \
             FROM \"q\".mq_message, {nothing}"
        );
        assert_eq!(token(&filled), Some("nothing"));
    }
}
