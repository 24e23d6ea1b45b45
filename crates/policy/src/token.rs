//! Capability tokens: short-lived proof that a kind of operation was already decided.
//!
//! A [`Token`] stands for an earlier decision about one peer, one syscall and some paths. Whoever
//! presents it is spared the YAML and extension rules, never the built-in ones: a token is a short cut
//! and not a right of its own. A call whose token is refused is therefore not an error; it goes
//! through the full evaluation, and [`TokenRefusal`] says why.
//!
//! A call is answered in two steps. [`TokenBook::check`] tells whether the token would cover it and
//! takes nothing; [`TokenBook::spend`] takes one operation, once the built-in rules have agreed.
//!
//! **Invariant.** Only the owner of the book issues: nothing here can be read from a message except
//! a [`TokenId`], which opens nothing for a peer it was not issued to.
//!
//! **Invariant.** A refused attempt takes nothing from the holder: no operation, no nonce.
//!
//! **Invariant.** A token that was once too old stays so, wherever the clock goes.

use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

use fluffy_base::{ByteSize, Digest, IdSource, ProjectPath, Span};

use crate::glob::Glob;

/// How long a token holds where nothing else is said.
pub const DEFAULT_TOKEN_TTL: Span = Span::from_ms(30_000);

/// The longest that a token may hold: an hour.
pub const MAX_TOKEN_TTL: Span = Span::from_ms(3_600_000);

/// How many tokens live at one time.
pub const MAX_LIVE_TOKENS: usize = 4_096;

/// How many path scopes one token may list.
pub const MAX_TOKEN_PATHS: usize = 256;

/// How far the clock may be behind what it once showed and still count as standing still. Two
/// threads that read the clock and then wait for each other arrive in either order.
const CLOCK_SLACK_MS: u64 = 1_000;

/// The name of a container, as its runtime gives it: letters, digits, `-`, `_` and `.`, beginning with
/// a letter or digit, at most 128.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId(String);

impl ContainerId {
    /// The id that `text` spells, or nothing if it spells none.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        (begins && text.len() <= 128 && text.bytes().all(fits)).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Who is at the other end of a connection, as the kernel measured it; never as it was claimed.
///
/// The system tells process 0 of a peer that it cannot see, and many such peers would be one; so
/// there is no peer 0.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The container that the process runs in.
    pub container: ContainerId,
    /// The process.
    pub pid: NonZeroU32,
}

/// The name of a token, which nobody can guess.
///
/// `Debug` shows only its beginning, so that a log does not hand it on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId([u8; 16]);

impl TokenId {
    /// A fresh id, or nothing when the source has no bytes to give.
    pub fn fresh(source: &dyn IdSource) -> Option<Self> {
        source.fresh().map(Self)
    }

    /// The id that a peer presents: 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(is_digit) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(|number| Self(number.to_be_bytes()))
    }

    /// The 32 digits, for the peer that the token is issued to.
    pub fn expose(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", self.expose().get(..8).unwrap_or_default())
    }
}

/// What a token covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenScope {
    /// The one syscall, by exact name.
    pub syscall: String,
    /// The files: every path of a call must be in one of these. An empty list matches no path, so
    /// such a token covers only calls that name none; and a token with a list covers only calls
    /// that name at least one, since a path that was not recognised must not count as harmless.
    pub paths: Vec<Glob>,
    /// How many operations.
    pub max_ops: NonZeroU32,
    /// How long: more than nothing, and at most [`MAX_TOKEN_TTL`].
    pub ttl: Span,
    /// How large a file may be. A call whose size is not known is then not covered.
    pub max_file_size: Option<ByteSize>,
}

/// A token to be issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The policy under which the decision was taken. Under any other the token is void.
    pub policy: Digest,
    /// To whom.
    pub peer: Peer,
    /// For what.
    pub scope: TokenScope,
    /// Fresh from a source that nobody can guess.
    pub id: TokenId,
}

/// A token as the peer is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What to present.
    pub id: TokenId,
    /// The first moment at which it holds no longer.
    pub expires_ms: u64,
}

/// A call that presents a token.
#[derive(Debug, Clone, Copy)]
pub struct TokenCall<'a> {
    /// Which token.
    pub token: TokenId,
    /// Greater than that of every call before.
    pub nonce: NonZeroU64,
    /// What is to be done.
    pub syscall: &'a str,
    /// Every path that the call names.
    pub paths: &'a [ProjectPath],
    /// How large the file is, where that is known.
    pub file_size: Option<ByteSize>,
}

/// The proof that a call is covered, to be spent once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a check that is not spent has taken nothing from the token"]
pub struct Checked {
    token: TokenId,
    serial: u64,
    spent: u32,
    nonce: NonZeroU64,
}

impl Checked {
    /// The token that covers the call.
    pub fn token(&self) -> TokenId {
        self.token
    }

    /// The nonce of the call.
    pub fn nonce(&self) -> NonZeroU64 {
        self.nonce
    }
}

/// Why a token is not issued.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum TokenError {
    /// A token that holds for no time at all.
    #[error("a token must hold for some time")]
    NoTime,
    /// A token that holds for too long.
    #[error("a token may not hold for {} ms; the most is {} ms", .0.ms(), MAX_TOKEN_TTL.ms())]
    TooLong(Span),
    /// A scope without a syscall.
    #[error("a token must name a syscall")]
    NoSyscall,
    /// A scope with too many paths.
    #[error("a token may not list {0} paths; the most is {MAX_TOKEN_PATHS}")]
    TooManyPaths(usize),
    /// The id is that of a live token.
    #[error("there is a token with this id already")]
    IdTaken,
    /// No room for another live token.
    #[error("{MAX_LIVE_TOKENS} tokens live already")]
    Full,
}

/// Why a token does not cover a call. The call then goes through the full evaluation.
///
/// Peers and policy are compared before anything else of the token, so that who found somebody
/// else's id learns nothing about it.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
pub enum TokenRefusal {
    /// No live token has this id.
    #[error("no such token")]
    Unknown,
    /// It was issued to a process in another container.
    #[error("the token belongs to another container")]
    OtherContainer,
    /// It was issued to another process of the same container.
    #[error("the token belongs to another process")]
    OtherProcess,
    /// It was issued under another policy.
    #[error("the token was issued under another policy")]
    OtherPolicy,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its operations are used up.
    #[error("the token's operations are used up")]
    UsedUp,
    /// Its nonce is not greater than one that was spent.
    #[error("the nonce {0} was used already, or one after it")]
    Replayed(NonZeroU64),
    /// It is for another syscall.
    #[error("the token is for another syscall")]
    OtherSyscall,
    /// The token is about paths and the call names none.
    #[error("the call names no path, and the token is for certain paths")]
    NoPath,
    /// A path is in none of its scopes.
    #[error("path `{0}` is outside the token's scope")]
    OutsidePath(ProjectPath),
    /// The file is larger than the token allows, or of unknown size.
    #[error("the file is larger than the token allows, or of unknown size")]
    FileSize,
    /// Another call was spent between this one's check and now.
    #[error("another call was made with the token in the meantime")]
    Overtaken,
}

#[derive(Debug)]
struct Entry {
    /// Tells apart two tokens that had the same id one after another.
    serial: u64,
    policy: Digest,
    peer: Peer,
    scope: TokenScope,
    expires_ms: u64,
    spent: u32,
    /// Zero before the first.
    last_nonce: u64,
    /// Whether it was told that its time is over.
    is_told: bool,
}

/// All live tokens. There is one book, the kernel's.
///
/// Time comes with every question and is asked for once: what [`TokenBook::check`] was told holds for
/// the whole evaluation, and [`TokenBook::spend`] does not ask again.
///
/// A clock that falls back by more than a second ends every token, because their age is no longer
/// known; up to a second counts as standing still.
#[derive(Debug, Default)]
pub struct TokenBook {
    live: BTreeMap<TokenId, Entry>,
    issued: u64,
    latest_ms: u64,
}

impl TokenBook {
    /// Enters a new token.
    pub fn issue(&mut self, now_ms: u64, grant: Grant) -> Result<Token, TokenError> {
        let Grant { policy, peer, scope, id } = grant;
        check_scope(&scope)?;
        let now_ms = self.advance(now_ms);
        if self.live.len() >= MAX_LIVE_TOKENS {
            self.drop_expired();
        }
        if self.live.contains_key(&id) {
            return Err(TokenError::IdTaken);
        }
        if self.live.len() >= MAX_LIVE_TOKENS {
            return Err(TokenError::Full);
        }
        let serial = self.issued;
        self.issued = self.issued.saturating_add(1);
        // At the end of time a token is expired as soon as it is issued.
        let expires_ms = now_ms.saturating_add(scope.ttl.ms());
        let (spent, last_nonce, is_told) = (0, 0, false);
        let entry = Entry { serial, policy, peer, scope, expires_ms, spent, last_nonce, is_told };
        self.live.insert(id, entry);
        Ok(Token { id, expires_ms })
    }

    /// Whether the token covers the call. Nothing is taken from the token, whatever the answer;
    /// the book only learns the time.
    pub fn check(
        &mut self,
        now_ms: u64,
        policy: &Digest,
        peer: &Peer,
        call: &TokenCall<'_>,
    ) -> Result<Checked, TokenRefusal> {
        let now_ms = self.advance(now_ms);
        let entry = self.live.get(&call.token).ok_or(TokenRefusal::Unknown)?;
        entry.check_bearer(policy, peer)?;
        entry.check_use(now_ms, call.nonce)?;
        entry.scope.check(call)?;
        Ok(Checked {
            token: call.token,
            serial: entry.serial,
            spent: entry.spent,
            nonce: call.nonce,
        })
    }

    /// Takes one operation and moves the nonce on. Fails if the token has ended since the check, or
    /// was spent by another call; then nothing is taken.
    pub fn spend(&mut self, checked: Checked) -> Result<(), TokenRefusal> {
        let entry = self.live.get_mut(&checked.token).ok_or(TokenRefusal::Unknown)?;
        if entry.serial != checked.serial {
            return Err(TokenRefusal::Unknown);
        }
        if entry.spent != checked.spent {
            return Err(TokenRefusal::Overtaken);
        }
        entry.spent = entry.spent.checked_add(1).ok_or(TokenRefusal::UsedUp)?;
        entry.last_nonce = checked.nonce.get();
        Ok(())
    }

    /// Ends one token; tells whether it was there.
    pub fn end(&mut self, id: TokenId) -> bool {
        self.live.remove(&id).is_some()
    }

    /// Ends the tokens of a peer. To be called when its connection closes, before the system gives
    /// its process number to another.
    pub fn end_peer(&mut self, peer: &Peer) {
        self.live.retain(|_, entry| entry.peer != *peer);
    }

    /// Ends every token, as an update of the policy does.
    pub fn end_all(&mut self) {
        self.live.clear();
    }

    /// Drops the tokens whose time is over.
    pub fn expire(&mut self, now_ms: u64) {
        self.advance(now_ms);
        self.drop_expired();
    }

    /// The tokens whose time is over since this was asked last.
    pub fn newly_expired(&mut self, now_ms: u64) -> Vec<TokenId> {
        let now_ms = self.advance(now_ms);
        let over = |entry: &mut Entry| {
            let is_news = now_ms >= entry.expires_ms && !entry.is_told;
            entry.is_told |= is_news;
            is_news
        };
        self.live.iter_mut().filter_map(|(id, entry)| over(entry).then_some(*id)).collect()
    }

    /// How many tokens the book holds, with those that are used up or not yet dropped.
    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether the book holds no token.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// The time that counts from here on: never less than before, unless there is no token left
    /// that could profit.
    fn advance(&mut self, now_ms: u64) -> u64 {
        if now_ms.saturating_add(CLOCK_SLACK_MS) < self.latest_ms {
            self.live.clear();
            self.latest_ms = now_ms;
        } else {
            self.latest_ms = self.latest_ms.max(now_ms);
        }
        self.latest_ms
    }

    fn drop_expired(&mut self) {
        let now_ms = self.latest_ms;
        self.live.retain(|_, entry| now_ms < entry.expires_ms);
    }
}

impl Entry {
    fn check_bearer(&self, policy: &Digest, peer: &Peer) -> Result<(), TokenRefusal> {
        if self.peer.container != peer.container {
            Err(TokenRefusal::OtherContainer)
        } else if self.peer.pid != peer.pid {
            Err(TokenRefusal::OtherProcess)
        } else if self.policy != *policy {
            Err(TokenRefusal::OtherPolicy)
        } else {
            Ok(())
        }
    }

    fn check_use(&self, now_ms: u64, nonce: NonZeroU64) -> Result<(), TokenRefusal> {
        if now_ms >= self.expires_ms {
            Err(TokenRefusal::Expired)
        } else if self.spent >= self.scope.max_ops.get() {
            Err(TokenRefusal::UsedUp)
        } else if nonce.get() <= self.last_nonce {
            Err(TokenRefusal::Replayed(nonce))
        } else {
            Ok(())
        }
    }
}

impl TokenScope {
    fn check(&self, call: &TokenCall<'_>) -> Result<(), TokenRefusal> {
        if self.syscall != call.syscall {
            return Err(TokenRefusal::OtherSyscall);
        }
        if call.paths.is_empty() && !self.paths.is_empty() {
            return Err(TokenRefusal::NoPath);
        }
        let inside = |path: &ProjectPath| self.paths.iter().any(|scope| scope.matches(path));
        if let Some(path) = call.paths.iter().find(|path| !inside(path)) {
            return Err(TokenRefusal::OutsidePath(path.clone()));
        }
        match (self.max_file_size, call.file_size) {
            (None, _) => Ok(()),
            (Some(most), Some(size)) if size <= most => Ok(()),
            (Some(_), _) => Err(TokenRefusal::FileSize),
        }
    }
}

fn check_scope(scope: &TokenScope) -> Result<(), TokenError> {
    if scope.ttl.ms() == 0 {
        Err(TokenError::NoTime)
    } else if scope.ttl > MAX_TOKEN_TTL {
        Err(TokenError::TooLong(scope.ttl))
    } else if scope.syscall.is_empty() {
        Err(TokenError::NoSyscall)
    } else if scope.paths.len() > MAX_TOKEN_PATHS {
        Err(TokenError::TooManyPaths(scope.paths.len()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
