//! Variables that are no settings although their names begin like one.
//!
//! Kubernetes tells every container of a namespace about each Service in variables named after it
//! (`enableServiceLinks`; `FromServices` in kubernetes' pkg/kubelet/envvars/envvars.go), and Docker's `--link` about a
//! container (`ToEnv` in moby's daemon/links/links.go). A Service named `pgqueue-gateway`, or `pgqueue-gateway-…`,
//! makes names with the prefix of our settings. They are told by name and value: a misspelt setting has another form.
//!
//! A link cannot replace a setting, since no setting has a name of these forms; a test in `environment` sees to it.

use std::{collections::BTreeMap, net::IpAddr};

/// Whether this is the value that a link gives to the variable.
type Form = fn(&str) -> bool;

/// Whether Kubernetes or Docker made this variable of the environment for a link.
pub(crate) fn is_link(name: &str, environment: &BTreeMap<String, String>) -> bool {
    let has_form = |name: &str| form(name).zip(environment.get(name)).is_some_and(|(form, value)| form(value));
    // Docker passes on the variables of the linked container, whatever their values, beside its name.
    let of_container = |(at, _): (usize, &str)| has_form(&format!("{}_NAME", &name[..at]));
    has_form(name) || name.match_indices("_ENV_").any(of_container)
}

/// Whether a link can make a variable of this name.
#[cfg(test)]
pub(crate) fn is_reserved(name: &str) -> bool {
    form(name).is_some() || name.contains("_ENV_")
}

fn form(name: &str) -> Option<Form> {
    let after = |mark: &str| name.rsplit_once(mark).map(|(_, rest)| rest);
    if name.ends_with("_SERVICE_HOST") {
        return Some(is_address);
    }
    // With the name of the port after it where the Service names its ports.
    if after("_SERVICE_PORT").is_some_and(|port| port.is_empty() || port.starts_with('_')) {
        return Some(is_port);
    }
    let of_port = |(at, mark): (usize, &str)| form_of_port(&name[at + mark.len()..]);
    if let Some(form) = name.match_indices("_PORT_").find_map(of_port) {
        return Some(form);
    }
    if name.ends_with("_PORT") {
        return Some(is_url);
    }
    name.ends_with("_NAME").then_some(is_container)
}

/// What follows `_PORT_`, as in `9092_TCP_ADDR`.
fn form_of_port(rest: &str) -> Option<Form> {
    let (port, rest) = rest.split_once('_')?;
    let (protocol, what) = rest.split_once('_').unwrap_or((rest, ""));
    if !is_port(port) || !is_protocol(&protocol.to_ascii_lowercase()) {
        return None;
    }
    match what {
        // Docker names the ends of a range of ports.
        "" | "START" | "END" => Some(is_url),
        "PORT" | "PORT_START" | "PORT_END" => Some(is_port),
        "ADDR" => Some(is_address),
        "PROTO" => Some(is_protocol),
        _ => None,
    }
}

fn is_protocol(value: &str) -> bool {
    ["tcp", "udp", "sctp"].contains(&value)
}

fn is_port(value: &str) -> bool {
    value.parse::<u16>().is_ok()
}

fn is_address(value: &str) -> bool {
    value.parse::<IpAddr>().is_ok()
}

/// As in `tcp://10.0.0.1:9092`; Docker leaves out the brackets of IPv6.
fn is_url(value: &str) -> bool {
    let parts = value.split_once("://").and_then(|(protocol, rest)| Some((protocol, rest.rsplit_once(':')?)));
    parts.is_some_and(|(protocol, (address, port))| {
        let address = address.strip_prefix('[').and_then(|address| address.strip_suffix(']')).unwrap_or(address);
        is_protocol(protocol) && is_address(address) && is_port(port)
    })
}

/// As in `/own_container/linked_container`.
fn is_container(value: &str) -> bool {
    value.strip_prefix('/').is_some_and(|path| path.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_links(variables: &[(&str, &str)]) -> bool {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        variables.iter().all(|(name, _)| is_link(name, &environment))
    }

    #[test]
    fn what_kubernetes_makes_for_a_service() {
        for [address, bracketed] in [["10.0.0.1", "10.0.0.1"], ["fd00::1", "[fd00::1]"]] {
            for (service, protocol) in [("", "tcp"), ("_HTTP", "udp"), ("_PORT_ENV", "sctp")] {
                let url = format!("{protocol}://{bracketed}:9092");
                let of_port = format!("PORT_9092_{}", protocol.to_uppercase());
                for (name, value) in [
                    ("SERVICE_HOST", address),
                    ("SERVICE_PORT", "9092"),
                    ("SERVICE_PORT_KAFKA_1", "9092"),
                    ("PORT", &url),
                    (&of_port, &url),
                    (&format!("{of_port}_ADDR"), address),
                    (&format!("{of_port}_PORT"), "9092"),
                    (&format!("{of_port}_PROTO"), protocol),
                ] {
                    let name = format!("PGQUEUE_GATEWAY{service}_{name}");
                    assert!(are_links(&[(&name, value)]), "{name}={value}");
                }
            }
        }
    }

    #[test]
    fn what_docker_makes_for_a_linked_container() {
        assert!(are_links(&[
            ("PGQUEUE_GATEWAY_NAME", "/web/pgqueue-gateway"),
            ("PGQUEUE_GATEWAY_PORT", "tcp://172.17.0.5:9092"),
            ("PGQUEUE_GATEWAY_PORT_9092_TCP_START", "tcp://172.17.0.5:9092"),
            ("PGQUEUE_GATEWAY_PORT_9092_TCP_PORT_START", "9092"),
            ("PGQUEUE_GATEWAY_PORT_9092_TCP_END", "tcp://fd00::5:9093"),
            ("PGQUEUE_GATEWAY_PORT_9092_TCP_PORT_END", "9093"),
            ("PGQUEUE_GATEWAY_ENV_PGQUEUE_GATEWAY_SCHEMA", "queue"),
            ("PGQUEUE_GATEWAY_ENV_LANG", ""),
        ]));
    }

    #[test]
    fn other_values_and_other_names_are_misspelt_settings() {
        for (name, value) in [
            ("PGQUEUE_GATEWAY_PORT", "9092"),
            ("PGQUEUE_GATEWAY_PORT", "tcp://kafka.example:9092"),
            ("PGQUEUE_GATEWAY_HTTP_PORT", "9644"),
            ("PGQUEUE_GATEWAY_SERVICE_HOST", "kafka.example"),
            ("PGQUEUE_GATEWAY_SERVICE_PORT", "70000"),
            ("PGQUEUE_GATEWAY_SERVICE_PORTS", "9092"),
            ("PGQUEUE_GATEWAY_PORT_9092", "tcp://10.0.0.1:9092"),
            ("PGQUEUE_GATEWAY_PORT_9092_TLS", "tcp://10.0.0.1:9092"),
            ("PGQUEUE_GATEWAY_PORT_9092_TCP_HOST", "10.0.0.1"),
            ("PGQUEUE_GATEWAY_LISTEN_ADDR", "10.0.0.1"),
            ("PGQUEUE_GATEWAY_SCHEMA_NAME", "queue"),
            ("PGQUEUE_GATEWAY_ENV_SCHEMA", "queue"),
        ] {
            assert!(!are_links(&[(name, value)]), "{name}={value}");
        }
    }
}
