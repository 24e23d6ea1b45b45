//! Reads the name in the greeting of TLS, without taking part in it.
//!
//! Whoever opens a tunnel to one host and greets another there is reaching for a second host on the first
//! one's address. What is said inside TLS after the greeting cannot be seen, so this is a check on honest
//! mistakes and simple tricks: a host that answers for others (a content network) can be reached for them
//! by whoever speaks to it as to a listed one.

use super::host::Host;
use super::record::{Refusal, shown};

/// The most that is collected: a greeting with today's largest keys has a tenth of it.
const LONGEST: usize = 18 * 1024;
/// The longest record of TLS.
const LONGEST_RECORD: usize = 1 << 14;

/// Collects a greeting.
#[derive(Debug)]
pub(super) struct Greeting {
    bytes: Vec<u8>,
    host: Host,
    needed: bool,
    /// Below this many bytes there is nothing new to see.
    enough: usize,
}

/// What the bytes so far are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Greeted {
    /// The beginning of a greeting.
    More,
    /// These bytes may be passed on, and whatever follows.
    Pass(Vec<u8>),
}

impl Greeting {
    /// The greeting of somebody who asked for this host; on port 443 nothing else is let through.
    pub(super) fn new(host: Host, port: u16) -> Self {
        Self { bytes: Vec::new(), host, needed: port == 443, enough: 1 }
    }

    /// Whether nothing but TLS is let through.
    pub(super) fn is_needed(&self) -> bool {
        self.needed
    }

    /// Adds bytes as they come, and tells the name once it is seen.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        name: &mut Option<String>,
    ) -> Result<Greeted, Refusal> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() < self.enough {
            return Ok(Greeted::More);
        }
        match look(&self.bytes) {
            Seen::Part { enough } => {
                self.enough = enough;
                Ok(Greeted::More)
            }
            Seen::Other if self.needed => Err(Refusal::NotTls),
            Seen::Broken => Err(Refusal::NotTls),
            Seen::Other | Seen::Hello(None) => Ok(Greeted::Pass(std::mem::take(&mut self.bytes))),
            Seen::Hello(Some(seen)) => {
                *name = Some(shown(&seen));
                let same = std::str::from_utf8(&seen).is_ok_and(|seen| {
                    // The name of TLS has no brackets around an address.
                    Host::parse(seen).or_else(|_| Host::parse(&format!("[{seen}]")))
                        == Ok(self.host.clone())
                });
                let pass = || Greeted::Pass(std::mem::take(&mut self.bytes));
                same.then(pass).ok_or(Refusal::ServerName)
            }
        }
    }
}

/// What bytes are.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// The beginning of a greeting, of which more can be said with this many bytes.
    Part { enough: usize },
    /// Not TLS.
    Other,
    /// It begins as TLS does and goes on otherwise.
    Broken,
    /// A greeting, with the name in it.
    Hello(Option<Vec<u8>>),
}

/// Puts the message together that the records carry, as far as they are there.
fn look(bytes: &[u8]) -> Seen {
    let mut message = Vec::new();
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match rest.first() {
            None => return Seen::Part { enough: at + 5 },
            Some(&22) => {}
            Some(_) if at == 0 => return Seen::Other,
            Some(_) => return Seen::Broken,
        }
        let &[_, major, _, high, low, ref payload @ ..] = rest else {
            return Seen::Part { enough: at + 5 };
        };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if major != 3 || length == 0 || length > LONGEST_RECORD || at + length > LONGEST {
            return Seen::Broken;
        }
        let Some(piece) = payload.get(..length) else {
            return Seen::Part { enough: at + 5 + length };
        };
        message.extend_from_slice(piece);
        match hello(&message) {
            Seen::Part { .. } => at += 5 + length,
            seen => return seen,
        }
    }
}

/// Reads the message of a greeting.
fn hello(message: &[u8]) -> Seen {
    let &[kind, high, middle, low, ref body @ ..] = message else {
        return Seen::Part { enough: 0 };
    };
    let length = usize::from(middle) << 8 | usize::from(low);
    if kind != 1 || high != 0 || length > LONGEST_RECORD {
        return Seen::Broken;
    }
    match body.get(..length) {
        None => Seen::Part { enough: 0 },
        Some(body) => server_name(&mut Cursor(body)).map_or(Seen::Broken, Seen::Hello),
    }
}

/// The name in the body of a greeting; nothing if the body is not one.
fn server_name(body: &mut Cursor<'_>) -> Option<Option<Vec<u8>>> {
    body.take(2 + 32)?;
    let _session = body.short_list()?;
    let _ciphers = body.list()?;
    let _compressions = body.short_list()?;
    if body.0.is_empty() {
        return Some(None);
    }
    let mut extensions = Cursor(body.list()?);
    if !body.0.is_empty() {
        return None;
    }
    let mut name = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number()?;
        let mut data = Cursor(extensions.list()?);
        if kind == 0 {
            let mut names = Cursor(data.list()?);
            let one = names.take(1)? == [0] && name.is_none();
            name = Some(names.list()?.to_vec());
            if !one || !names.0.is_empty() || !data.0.is_empty() {
                return None;
            }
        }
    }
    Some(name)
}

/// Bytes that are read from the front.
struct Cursor<'b>(&'b [u8]);

impl<'b> Cursor<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        let &[high, low] = self.take(2)? else { return None };
        Some(u16::from_be_bytes([high, low]))
    }

    /// Bytes behind their count, which has one byte.
    fn short_list(&mut self) -> Option<&'b [u8]> {
        let &[count] = self.take(1)? else { return None };
        self.take(usize::from(count))
    }

    /// Bytes behind their count, which has two bytes.
    fn list(&mut self) -> Option<&'b [u8]> {
        let count = self.number()?;
        self.take(usize::from(count))
    }
}

#[cfg(test)]
mod tests;
