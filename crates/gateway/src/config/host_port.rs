use std::{fmt, str::FromStr};

/// A host name or address with a port, as a client would write it: `host:9092`, `[::1]:9092`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPort {
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = text.rsplit_once(':').ok_or("expected HOST:PORT")?;
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let port: u16 = port.parse().map_err(|_| format!("{port:?} is not a port number"))?;
        if host.is_empty() || host.contains(['/', ' ', '[', ']']) {
            return Err(format!("{host:?} is not a host name or address"));
        }
        if port == 0 {
            return Err("clients cannot connect to port 0".to_owned());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_port_takes_names_and_addresses() {
        let parsed: HostPort = "kafka.example:9092".parse().unwrap();
        assert_eq!((parsed.host.as_str(), parsed.port), ("kafka.example", 9092));
        let parsed: HostPort = "[::1]:9092".parse().unwrap();
        assert_eq!(parsed.host, "::1");
        assert_eq!(parsed.to_string(), "[::1]:9092");
        for wrong in ["kafka", "kafka:", ":9092", "kafka:0", "kafka:70000", "http://kafka:9092"] {
            assert!(wrong.parse::<HostPort>().is_err(), "{wrong}");
        }
    }
}
