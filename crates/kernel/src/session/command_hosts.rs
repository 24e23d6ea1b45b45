//! Which hosts a command may reach: those of the policy's `network_whitelist`, and others only if a person agrees each time.
//!
//! **Invariant.** A host is a public name, written plainly. An address, a wildcard or a port is refused whatever a person would say: the
//! proxy lets a listed address through even where it belongs to the machine itself.

use std::sync::Arc;

use fluffy_base::{Excerpt, Json};
use fluffy_policy::{Facts, Layer, Reason, Reasons, Rule, Verdict};
use serde_json::Value;

use super::desk::Desk;

/// The rule that judges the hosts of a command.
pub(crate) const COMMAND_HOSTS: &str = "session.command-hosts";

/// The most hosts of one command.
const MAX_HOSTS: usize = 16;

/// Judges the hosts that a command asks for.
pub(crate) struct CommandHostsRule(pub(crate) Arc<Desk>);

/// The hosts that a command asks for; an error where one cannot be asked for.
pub(crate) fn hosts_of(params: &Json) -> Result<Vec<String>, String> {
    let Some(hosts) = params.value().get("hosts") else { return Ok(Vec::new()) };
    let wrong = || "`hosts` is a list of names such as `api.example.com`".to_owned();
    let hosts = hosts.as_array().ok_or_else(wrong)?;
    if hosts.len() > MAX_HOSTS {
        return Err(format!("a command reaches {MAX_HOSTS} hosts at most"));
    }
    hosts.iter().map(|host| plain_host(host.as_str().ok_or_else(wrong)?)).collect()
}

fn plain_host(host: &str) -> Result<String, String> {
    let label = |label: &str| {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&label.len())
            && label.bytes().all(allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_name = last.starts_with(|c: char| c.is_ascii_lowercase());
    if host.len() <= 253 && host.contains('.') && is_name && host.split('.').all(label) {
        return Ok(host.to_owned());
    }
    let host = Excerpt::new(host, 80);
    Err(format!(
        "`{host}` is not a host that a command can ask for: name it in lower case such as \
         `api.example.com`, without scheme, port, path and `*`; addresses are not reached"
    ))
}

/// Whether the policy lists a host, by itself or by `*.` before a name that it ends with.
fn is_listed(host: &str, listed: &[String]) -> bool {
    listed.iter().any(|entry| match entry.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|below| below.ends_with('.')),
        None => host == entry,
    })
}

impl Rule for CommandHostsRule {
    fn name(&self) -> &str {
        COMMAND_HOSTS
    }

    fn layer(&self) -> Layer {
        Layer::Workflow
    }

    fn judge(&self, facts: &Facts<'_>) -> Verdict {
        let Some(params) = facts.tool_params().filter(|_| facts.tool() == Some("shell.run")) else {
            return Verdict::Pass;
        };
        if params.value().get("hosts").is_none_or(Value::is_null) {
            return Verdict::Pass;
        }
        let reason = |text: &str| Reason::new(self.layer(), self.name(), text);
        let hosts = match hosts_of(params) {
            Ok(hosts) => hosts,
            Err(why) => return Verdict::deny(reason(&why)),
        };
        let Some(listed) = self.0.listed_hosts() else {
            return Verdict::deny(reason("the session is over"));
        };
        let others = hosts.iter().filter(|host| !is_listed(host, &listed));
        let reasons = others.map(|host| {
            reason(&format!(
                "the command would reach `{host}`, which `network_whitelist` does not list"
            ))
        });
        Reasons::collect(reasons).map_or(Verdict::Pass, Verdict::Review)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hosts_are_public_names() {
        let hosts = |hosts: Value| hosts_of(&Json::new(json!({ "hosts": hosts })).unwrap());
        assert_eq!(hosts(json!(["api.example.com"])), Ok(vec!["api.example.com".to_owned()]));
        for host in [
            "localhost",
            "127.0.0.1",
            "[::1]",
            "::1",
            "10.0.0.1",
            "0x7f.1",
            "*.example.com",
            "a.b:80",
            "https://a.b",
            "a.b/c",
            "A.b",
            "a..b",
            "-a.b",
            "a.b.",
            "",
            "a b.c",
            "2130706433",
            "é.com",
        ] {
            assert!(hosts(json!([host])).is_err(), "{host}");
        }
        for wrong in [json!("a.b"), json!([1]), json!({}), json!(vec!["a.bc"; 17])] {
            assert!(hosts(wrong).is_err());
        }
    }

    #[test]
    fn listed_names_cover_what_is_below_a_wildcard() {
        let listed = ["pypi.org".to_owned(), "*.example.com".to_owned()];
        for host in ["pypi.org", "a.example.com", "a.b.example.com"] {
            assert!(is_listed(host, &listed), "{host}");
        }
        for host in ["x.pypi.org", "example.com", "badexample.com", "pypi.org.evil.com"] {
            assert!(!is_listed(host, &listed), "{host}");
        }
    }
}
