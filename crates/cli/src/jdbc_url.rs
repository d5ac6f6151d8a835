//! pgJDBC's connection URL, as DataHub is given it, into the one that the gateway takes.

use std::collections::BTreeMap;

/// Translates `jdbc:postgresql://HOST:PORT/DATABASE?PARAMETERS`. Parameters for TLS and the user get libpq's names; the
/// rest tunes the Java driver and is dropped.
///
/// # Errors
/// A URL that is not pgJDBC's, names several hosts, or contradicts `username` and `password`.
pub(crate) fn postgres_url(jdbc: &str, username: Option<&str>, password: Option<&str>) -> Result<String, String> {
    let rest = jdbc.strip_prefix("jdbc:postgresql:").ok_or("expected a URL that starts with jdbc:postgresql:")?;
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (hosts, database) = match location.strip_prefix("//") {
        Some(address) => address.split_once('/').unwrap_or((address, "")),
        None => ("", location.trim_start_matches('/')),
    };
    if hosts.contains(',') {
        return Err("several hosts are not supported; name the primary".to_owned());
    }
    let parameters = parameters(query)?;
    let parameter = |name: &str| parameters.get(name).map(String::as_str);
    let user = one_of("user", parameter("user"), "_USERNAME", username)?;
    let password = one_of("password", parameter("password"), "_PASSWORD", password)?;

    let mut url = "postgres://".to_owned();
    if let Some(user) = user {
        url.push_str(&encode(user));
        if let Some(password) = password {
            url.push(':');
            url.push_str(&encode(password));
        }
        url.push('@');
    }
    url.push_str(if hosts.is_empty() { "localhost" } else { hosts });
    url.push('/');
    url.push_str(database);
    let mut separator = '?';
    for (name, value) in connection_parameters(&parameters)? {
        url.push_str(&format!("{separator}{name}={}", encode(&value)));
        separator = '&';
    }
    Ok(url)
}

/// The one value that the URL and the variable give, if any.
fn one_of<'a>(
    in_url: &str,
    url_value: Option<&'a str>,
    variable: &str,
    value: Option<&'a str>,
) -> Result<Option<&'a str>, String> {
    match (url_value, value) {
        (Some(one), Some(other)) if one != other => Err(format!("its {in_url} differs from that of {variable}")),
        (one, other) => Ok(one.or(other)),
    }
}

fn parameters(query: &str) -> Result<BTreeMap<String, String>, String> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

/// Those that the gateway takes, under their names in its URL.
fn connection_parameters(parameters: &BTreeMap<String, String>) -> Result<Vec<(&'static str, String)>, String> {
    let mut translated = Vec::new();
    for (jdbc, libpq) in
        [("sslmode", "sslmode"), ("sslrootcert", "sslrootcert"), ("sslcert", "sslcert"), ("sslkey", "sslkey")]
    {
        if let Some(value) = parameters.get(jdbc) {
            translated.push((libpq, value.clone()));
        }
    }
    // pgJDBC: ssl=true without sslmode means verify-full (`SslMode.of`).
    if parameters.get("ssl").is_some_and(|ssl| ssl.is_empty() || ssl == "true") && !parameters.contains_key("sslmode") {
        translated.push(("sslmode", "verify-full".to_owned()));
    }
    // How Java is told that a pooler does not know prepared statements.
    if parameters.get("prepareThreshold").is_some_and(|threshold| threshold == "0") {
        translated.push(("statement-cache-capacity", "0".to_owned()));
    }
    Ok(translated)
}

/// Percent-encodes everything that could end a part of a URL.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte as char),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Undoes percent-encoding; a plus is a blank, as in Java's `URLDecoder`.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let hex = rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
                let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
                bytes.push(byte.ok_or_else(|| format!("bad percent-encoding in {text:?}"))?);
                rest = &rest[2..];
            }
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(jdbc: &str) -> Result<String, String> {
        postgres_url(jdbc, Some("data hub"), Some("p@ss/word"))
    }

    #[test]
    fn jdbc_urls_become_postgres_urls() {
        for (jdbc, url) in [
            ("jdbc:postgresql://db:5433/hub", "postgres://data%20hub:p%40ss%2Fword@db:5433/hub"),
            ("jdbc:postgresql://db/hub?ssl=true", "postgres://data%20hub:p%40ss%2Fword@db/hub?sslmode=verify-full"),
            (
                "jdbc:postgresql://db/hub?sslmode=require&ApplicationName=gms&prepareThreshold=0",
                "postgres://data%20hub:p%40ss%2Fword@db/hub?sslmode=require&statement-cache-capacity=0",
            ),
            ("jdbc:postgresql:hub", "postgres://data%20hub:p%40ss%2Fword@localhost/hub"),
            ("jdbc:postgresql://[::1]:5432/hub", "postgres://data%20hub:p%40ss%2Fword@[::1]:5432/hub"),
        ] {
            assert_eq!(translate(jdbc).as_deref(), Ok(url), "{jdbc}");
        }
        let own = postgres_url("jdbc:postgresql://db/hub?user=me&password=a%26b", None, None);
        assert_eq!(own.as_deref(), Ok("postgres://me:a%26b@db/hub"));
    }

    #[test]
    fn what_cannot_be_honoured_is_refused() {
        assert!(translate("jdbc:mysql://db/hub").is_err());
        assert!(translate("jdbc:postgresql://a,b/hub").unwrap_err().contains("primary"));
        assert!(translate("jdbc:postgresql://db/hub?user=someone").unwrap_err().contains("_USERNAME"));
        assert!(translate("jdbc:postgresql://db/hub?user=%zz").is_err());
    }
}
