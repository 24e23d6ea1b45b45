//! Whether a packet that somebody proposes grants more than the proposal does.
//!
//! A packet grants nothing: what is enforced comes from the proposal. But a builder that is told to use the network
//! writes code that does, so such a packet is not used, and a person is asked. Compared are the parts that speak of
//! authority: schemas, side-effect classes, paths, hosts and secrets as values, then every changed line for words
//! that belong to something the proposal does not have, however they are spelt.
//!
//! **Invariant.** When in doubt it is widening: the price is a question to a person.

use std::collections::BTreeSet;

use fluffy_base::Excerpt;
use serde_json::Value;

use super::changes::Changes;
use super::spelling::{folded, is_odd, squeezed, unleeted};
use super::tokens::{Token, tokens};
use crate::{Proposal, SUPPORT, SideEffect};

/// How much is told of a line.
const CHARS: usize = 160;

/// How many reasons are told.
const MOST: usize = 20;

/// What marks a line as words of a stranger that were shown to the builder.
const QUOTED: &str = "| ";

/// Words of one kind of authority, in small letters.
struct Family {
    name: &'static str,
    words: &'static [&'static str],
}

const NETWORK: Family = Family {
    name: "the network",
    words: &[
        "network",
        "internet",
        "http",
        "https",
        "socket",
        "urllib",
        "requests",
        "httpx",
        "aiohttp",
        "websocket",
        "ftp",
        "smtp",
        "dns",
        "download",
        "upload",
        "curl",
        "wget",
        "webhook",
        "fetch",
        "endpoint",
    ],
};
const SECRETS: Family = Family {
    name: "secrets",
    words: &[
        "secret",
        "secrets",
        "credential",
        "credentials",
        "password",
        "passphrase",
        "api key",
        "apikey",
        "access token",
        "auth token",
        "bearer",
        "private key",
        "environ",
        "getenv",
        "environment variable",
        "environment variables",
        "keyring",
    ],
};
const MONEY: Family = Family {
    name: "money",
    words: &[
        "money",
        "payment",
        "payments",
        "invoice",
        "purchase",
        "charge",
        "transfer funds",
        "bank account",
        "credit card",
        "wallet",
        "refund",
    ],
};
const MESSAGING: Family = Family {
    name: "messages to people",
    words: &[
        "messaging",
        "email",
        "e mail",
        "mail",
        "sms",
        "slack",
        "telegram",
        "whatsapp",
        "discord",
        "notify",
        "post to",
    ],
};
const WRITING: Family = Family {
    name: "writing files",
    words: &[
        "file write",
        "filewrite",
        "write file",
        "write files",
        "write access",
        "writable",
        "write text",
        "write bytes",
        "mkdir",
        "unlink",
        "rmtree",
        "shutil",
        "chmod",
        "symlink",
        "delete file",
        "delete files",
    ],
};
const NEVER: Family = Family {
    name: "what no skill may have",
    words: &[
        "subprocess",
        "os system",
        "popen",
        "fork",
        "ctypes",
        "cffi",
        "importlib",
        "import module",
        "builtins",
        "eval",
        "exec",
        "pickle",
        "marshal",
        "monkeypatch",
        "monkey patch",
        "sudo",
        "root access",
        "shell",
        "pip install",
        "noqa",
        "type ignore",
        "pragma",
        "skip test",
        "skip tests",
        "pytest skip",
        "xfail",
        "disable",
        "bypass",
        "circumvent",
        "override",
        "ignore previous",
        "ignore all",
        "ignore the",
        "disregard",
        "allowlist",
        "whitelist",
        "policy yaml",
        "policy",
        "sandbox",
        "permission",
        "permissions",
        "privilege",
        "privileges",
        "side effect",
        "side effects",
        "sideeffect",
        "registry",
        "ledger",
        "promote",
        "trusted",
    ],
};

/// Words by which a line holds something back: it does not go away.
const BOUNDS: &[&str] = &[
    "no",
    "not",
    "none",
    "nothing",
    "nowhere",
    "never",
    "without",
    "except",
    "only",
    "exactly",
    "must",
    "don t",
    "cannot",
    "can t",
    "forbidden",
    "forbid",
    "refused",
    "required",
];

/// Why a proposed packet is not used; nothing where it grants no more than the proposal. The reasons are lines.
pub(crate) fn widening(proposal: &Proposal, original: &str, proposed: &str) -> Vec<String> {
    let mut reasons = BTreeSet::new();
    let changes = Changes::between(original, proposed);
    compare_schemas(original, proposed, &mut reasons);
    compare_classes(proposal, original, proposed, &mut reasons);
    for line in changes.removed.iter().filter(|line| !line.starts_with(QUOTED)) {
        if let Some(what) = held_by(line) {
            reasons.insert(told(&format!("a line that speaks of {what} is gone"), line));
        }
    }
    let granted = Granted::of(proposal);
    for line in &changes.added {
        granted.judge(line, &mut reasons);
    }
    // Spelt over several lines, or with something in between.
    let (before, after) = (Run::of(original), Run::of(proposed));
    for family in granted.lacking() {
        let words = family.words.iter().map(|word| squeezed(word));
        for word in words.filter(|word| word.len() >= 6 && after.says_more_than(&before, word)) {
            reasons.insert(format!("it speaks of {}: `{word}`", family.name));
        }
    }
    reasons.into_iter().take(MOST).collect()
}

/// A text without anything but its letters, as it stands and with digits for letters undone.
struct Run {
    plain: String,
    mended: String,
}

impl Run {
    fn of(text: &str) -> Self {
        let plain = squeezed(text);
        Self { mended: unleeted(&plain), plain }
    }

    fn says_more_than(&self, other: &Self, word: &str) -> bool {
        let count = |text: &str| text.matches(word).count();
        count(&self.plain) > count(&other.plain) || count(&self.mended) > count(&other.mended)
    }
}

/// What a proposal has, to be compared with what a line speaks of.
struct Granted<'a> {
    proposal: &'a Proposal,
    paths: Vec<String>,
    hosts: Vec<String>,
}

impl<'a> Granted<'a> {
    fn of(proposal: &'a Proposal) -> Self {
        let own = [proposal.name.skill_path(), proposal.name.test_path()];
        let own = own.into_iter().flatten().map(|path| path.as_str().to_owned());
        let folders = proposal.reads.iter().chain(&proposal.writes);
        let folders = folders.map(|path| path.as_str().to_owned());
        let support = SUPPORT.iter().map(|path| (*path).to_owned());
        let paths = own.chain(folders).chain(support).collect();
        let hosts = proposal.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        Self { proposal, paths, hosts }
    }

    /// Families of words that the proposal has nothing of.
    fn lacking(&self) -> Vec<&'static Family> {
        let Proposal { side_effect: class, writes, hosts, secrets, .. } = self.proposal;
        let mut lacking = vec![&NEVER];
        let mut lacks = |family, does| {
            if does {
                lacking.push(family);
            }
        };
        lacks(&NETWORK, hosts.is_empty());
        lacks(&SECRETS, secrets.is_empty());
        lacks(&WRITING, writes.is_empty());
        lacks(&MONEY, *class != SideEffect::Money);
        lacks(&MESSAGING, *class != SideEffect::Messaging);
        lacking
    }

    /// What a new line speaks of that was not granted.
    fn judge(&self, line: &str, reasons: &mut BTreeSet<String>) {
        if let Some(odd) = line.chars().find(|c| is_odd(*c)) {
            reasons.insert(told(
                &format!("it has a letter that may pose as another (U+{:04X})", odd as u32),
                line,
            ));
        }
        for family in self.lacking() {
            if speaks_of(line, family.words) {
                reasons.insert(told(&format!("it speaks of {}", family.name), line));
            }
        }
        for token in tokens(line) {
            let (what, word, fits) = match token {
                Token::Path(path) => ("a path", path, self.has_path(path)),
                Token::Host(host) => ("a host", host, self.has_host(host)),
                Token::Secret(name) => {
                    ("a secret", name, self.proposal.secrets.iter().any(|own| own == name))
                }
            };
            if !fits {
                let word = Excerpt::new(word, CHARS);
                reasons.insert(format!("it names {what} that was not proposed: `{word}`"));
            }
        }
    }

    fn has_path(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let below = |own: &String| {
            path.strip_prefix(own.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        // Part of a path that is its own: `tests/test_x.py`.
        let tail = |own: &String| {
            own.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        !path.split('/').any(|part| part == "..")
            && self.paths.iter().any(|own| below(own) || tail(own))
    }

    fn has_host(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let bare = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
        self.hosts.iter().any(|own| {
            let own_name = own.rsplit_once(':').map_or(own.as_str(), |(name, _)| name);
            *own == host || bare == host && own_name == bare
        })
    }
}

/// What a line holds on to, if it does: such lines do not go away.
fn held_by(line: &str) -> Option<&'static str> {
    let families = [&NETWORK, &SECRETS, &MONEY, &MESSAGING, &WRITING, &NEVER];
    if let Some(family) = families.into_iter().find(|family| speaks_of(line, family.words)) {
        return Some(family.name);
    }
    if SideEffect::ALL.into_iter().any(|class| line.contains(class.name())) {
        return Some("the side-effect class");
    }
    if tokens(line).next().is_some() {
        return Some("paths, hosts or secrets");
    }
    speaks_of(line, BOUNDS).then_some("what is not allowed")
}

/// Whether a line has one of these words, or words one after the other.
fn speaks_of(line: &str, words: &[&str]) -> bool {
    let plain = format!(" {} ", folded(line));
    let mended = unleeted(&plain);
    words.iter().any(|word| {
        let word = format!(" {word} ");
        plain.contains(&word) || mended.contains(&word)
    })
}

/// Every schema of the original is there as it was, and no other.
fn compare_schemas(original: &str, proposed: &str, reasons: &mut BTreeSet<String>) {
    let (old, new) = (schemas(original), schemas(proposed));
    if old != new {
        reasons.insert("its schemas are not those of the proposal".to_owned());
    }
}

/// The blocks of JSON in a packet, by their value where they have one.
fn schemas(packet: &str) -> Vec<String> {
    let (mut blocks, mut block) = (Vec::new(), None::<(&str, String)>);
    for line in packet.lines() {
        let (fence, word) = fence(line);
        match &mut block {
            None if fence.len() >= 3 && word.to_ascii_lowercase().starts_with("json") => {
                block = Some((fence, String::new()));
            }
            None => {}
            Some((open, text)) if word.is_empty() && fence.starts_with(*open) => {
                blocks.push(normal(text));
                block = None;
            }
            Some((_, text)) => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    blocks.extend(block.map(|(_, text)| normal(&text)));
    blocks
}

/// The fence that a line begins with, and what stands behind it.
fn fence(line: &str) -> (&str, &str) {
    let line = line.trim();
    let mark = if line.starts_with('~') { '~' } else { '`' };
    let rest = line.trim_start_matches(mark);
    (line.get(..line.len() - rest.len()).unwrap_or_default(), rest.trim_start())
}

fn normal(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => value.to_string(),
        Err(_) => text.to_owned(),
    }
}

/// The classes that are named are those of before, and of the others only what stood there.
fn compare_classes(
    proposal: &Proposal,
    original: &str,
    proposed: &str,
    reasons: &mut BTreeSet<String>,
) {
    for class in SideEffect::ALL {
        let (before, after) = (original.contains(class.name()), proposed.contains(class.name()));
        if after && !before && class != proposal.side_effect {
            reasons.insert(format!("it names the side-effect class {class}"));
        }
        if before && !after {
            reasons.insert(format!("it does not name the side-effect class {class} any more"));
        }
    }
}

fn told(what: &str, line: &str) -> String {
    format!("{what}: `{}`", Excerpt::new(line.trim(), CHARS))
}

#[cfg(test)]
mod tests;
