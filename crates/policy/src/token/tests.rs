//! Every promise of the tokens, and a naive model that the book must agree with.

use fluffy_base::SeededIds;
use proptest::prelude::*;

use super::*;

const START: u64 = 1_000_000;

fn path(text: &str) -> ProjectPath {
    ProjectPath::parse(text).unwrap()
}

fn peer(container: &str, pid: u32) -> Peer {
    Peer { container: ContainerId::parse(container).unwrap(), pid: NonZeroU32::new(pid).unwrap() }
}

fn policy() -> Digest {
    Digest::of(b"policy")
}

fn id(number: u8) -> TokenId {
    TokenId([number; 16])
}

fn glob(text: &str) -> Glob {
    Glob::parse(text).unwrap()
}

fn grant(number: u8) -> Grant {
    Grant {
        policy: policy(),
        peer: peer("box", 7),
        scope: TokenScope {
            syscall: "fs.read".to_owned(),
            paths: vec![glob("src/a.rs"), glob("src/b.rs")],
            max_ops: NonZeroU32::new(2).unwrap(),
            ttl: DEFAULT_TOKEN_TTL,
            max_file_size: None,
        },
        id: id(number),
    }
}

/// A book with the token of [`grant`], changed by `change`, issued at [`START`].
fn book(change: impl FnOnce(&mut TokenScope)) -> TokenBook {
    let mut book = TokenBook::default();
    let mut grant = grant(1);
    change(&mut grant.scope);
    book.issue(START, grant).unwrap();
    book
}

/// One call by the rightful holder, with these things different.
struct Attempt {
    now_ms: u64,
    policy: Digest,
    peer: Peer,
    nonce: u64,
    syscall: &'static str,
    paths: Vec<ProjectPath>,
    file_size: Option<u64>,
}

impl Default for Attempt {
    fn default() -> Self {
        Self {
            now_ms: START,
            policy: policy(),
            peer: peer("box", 7),
            nonce: 1,
            syscall: "fs.read",
            paths: vec![path("src/a.rs")],
            file_size: None,
        }
    }
}

impl Attempt {
    fn check(&self, book: &mut TokenBook) -> Result<Checked, TokenRefusal> {
        let call = TokenCall {
            token: id(1),
            nonce: NonZeroU64::new(self.nonce).unwrap(),
            syscall: self.syscall,
            paths: &self.paths,
            file_size: self.file_size.map(ByteSize::from_bytes),
        };
        book.check(self.now_ms, &self.policy, &self.peer, &call)
    }

    fn run(&self, book: &mut TokenBook) -> Result<(), TokenRefusal> {
        let checked = self.check(book)?;
        book.spend(checked)
    }
}

fn at(now_ms: u64) -> Attempt {
    Attempt { now_ms, ..Attempt::default() }
}

fn with_nonce(nonce: u64) -> Attempt {
    Attempt { nonce, ..Attempt::default() }
}

fn with_paths(paths: &[&str]) -> Attempt {
    Attempt { paths: paths.iter().map(|text| path(text)).collect(), ..Attempt::default() }
}

#[test]
fn a_token_covers_what_it_was_issued_for() {
    let mut book = book(|_| {});
    let checked = Attempt::default().check(&mut book).unwrap();
    assert_eq!((checked.token(), checked.nonce().get()), (id(1), 1));
    assert_eq!(book.spend(checked), Ok(()));
    assert_eq!(with_nonce(9).run(&mut book), Ok(()));
}

#[test]
fn case_09_an_expired_token_is_refused_with_a_reason_and_not_an_error() {
    let refusal = at(START + 30_001).run(&mut book(|_| {})).unwrap_err();
    assert_eq!(refusal, TokenRefusal::Expired);
    assert_eq!(refusal.to_string(), "the token has expired");
}

#[test]
fn case_21_a_token_whose_operations_are_used_up_is_refused() {
    let mut book = book(|_| {});
    assert_eq!(with_nonce(1).run(&mut book), Ok(()));
    assert_eq!(with_nonce(2).run(&mut book), Ok(()));
    assert_eq!(with_nonce(3).run(&mut book), Err(TokenRefusal::UsedUp));
}

#[test]
fn case_22_the_moment_of_expiry_is_expired_and_the_one_before_is_not() {
    assert_eq!(at(START + 29_999).run(&mut book(|_| {})), Ok(()));
    assert_eq!(at(START + 30_000).run(&mut book(|_| {})), Err(TokenRefusal::Expired));
}

#[test]
fn case_22_what_was_in_time_when_checked_is_spent_whatever_the_time_is_then() {
    let mut book = book(|_| {});
    let checked = at(START + 29_999).check(&mut book).unwrap();
    assert_eq!(at(START + 30_000).check(&mut book), Err(TokenRefusal::Expired));
    assert_eq!(book.spend(checked), Ok(()));
}

#[test]
fn case_23_a_token_is_void_in_another_container_and_in_another_process() {
    let mut book = book(|_| {});
    let other = |container, pid| Attempt { peer: peer(container, pid), ..Attempt::default() };
    assert_eq!(other("box2", 7).run(&mut book), Err(TokenRefusal::OtherContainer));
    assert_eq!(other("box", 8).run(&mut book), Err(TokenRefusal::OtherProcess));
    assert_eq!(other("box", 7).run(&mut book), Ok(()));
}

#[test]
fn a_clock_that_goes_backwards_revives_nothing() {
    for back in [1, 500, 1_000, 1_001, 29_000, START] {
        let mut book = book(|_| {});
        assert_eq!(at(START + 30_000).check(&mut book), Err(TokenRefusal::Expired));
        let refusal = at(START + 30_000 - back).run(&mut book).unwrap_err();
        assert!(matches!(refusal, TokenRefusal::Expired | TokenRefusal::Unknown), "{back}");
    }
}

#[test]
fn a_clock_that_leaps_ahead_and_back_leaves_no_token_that_holds_for_ever() {
    let mut book = book(|_| {});
    let year = 31_536_000_000;
    assert_eq!(at(START + year).check(&mut book), Err(TokenRefusal::Expired));
    book.issue(START + 1_000, grant(2)).unwrap();
    book.expire(START + 30_999);
    assert_eq!(book.len(), 1);
    book.expire(START + 31_000);
    assert!(book.is_empty());
}

#[test]
fn two_threads_that_read_the_clock_in_one_order_and_ask_in_the_other_lose_no_token() {
    let mut book = book(|_| {});
    assert_eq!(Attempt { nonce: 1, ..at(START + 5) }.run(&mut book), Ok(()));
    assert_eq!(Attempt { nonce: 2, ..at(START + 4) }.run(&mut book), Ok(()));
}

#[test]
fn at_the_end_of_time_a_token_expires_at_once_and_nothing_overflows() {
    let mut book = TokenBook::default();
    assert_eq!(book.issue(u64::MAX, grant(1)).unwrap().expires_ms, u64::MAX);
    assert_eq!(at(u64::MAX).run(&mut book), Err(TokenRefusal::Expired));
    assert_eq!(at(0).run(&mut book), Err(TokenRefusal::Unknown));
}

#[test]
fn a_nonce_must_be_greater_than_every_one_that_was_spent() {
    let mut book = book(|scope| scope.max_ops = NonZeroU32::MAX);
    assert_eq!(with_nonce(5).run(&mut book), Ok(()));
    for nonce in [1, 4, 5] {
        let refusal = with_nonce(nonce).run(&mut book).unwrap_err();
        assert!(matches!(refusal, TokenRefusal::Replayed(n) if n.get() == nonce));
    }
    assert_eq!(with_nonce(u64::MAX).run(&mut book), Ok(()));
    let refusal = with_nonce(u64::MAX).run(&mut book).unwrap_err();
    assert!(matches!(refusal, TokenRefusal::Replayed(_)));
}

#[test]
fn lesson_l11_a_failed_attempt_burns_neither_nonce_nor_operation() {
    let mut book = book(|scope| scope.max_ops = NonZeroU32::MIN);
    let attempts = [
        Attempt { peer: peer("thief", 7), nonce: u64::MAX, ..Attempt::default() },
        Attempt { peer: peer("box", 8), nonce: u64::MAX, ..Attempt::default() },
        Attempt { policy: Digest::of(b"other"), nonce: u64::MAX, ..Attempt::default() },
        Attempt { syscall: "fs.write", nonce: u64::MAX, ..Attempt::default() },
        Attempt { nonce: u64::MAX, ..with_paths(&["secrets/key"]) },
        Attempt { nonce: u64::MAX, ..with_paths(&[]) },
    ];
    for attempt in attempts {
        attempt.run(&mut book).unwrap_err();
    }
    // A check alone takes nothing either.
    let unused = with_nonce(u64::MAX).check(&mut book).unwrap();
    drop(unused);
    assert_eq!(with_nonce(1).run(&mut book), Ok(()));
}

#[test]
fn a_check_that_was_overtaken_is_not_spent() {
    let mut book = book(|_| {});
    let slow = with_nonce(1).check(&mut book).unwrap();
    let quick = with_nonce(2).check(&mut book).unwrap();
    assert_eq!(book.spend(quick), Ok(()));
    assert_eq!(book.spend(slow), Err(TokenRefusal::Overtaken));
    assert_eq!(with_nonce(3).run(&mut book), Ok(()), "the overtaken call took nothing");
}

#[test]
fn a_check_dies_with_its_token_even_if_the_id_comes_back() {
    let mut book = book(|_| {});
    let checked = Attempt::default().check(&mut book).unwrap();
    assert!(book.end(id(1)));
    assert!(!book.end(id(1)));
    book.issue(START, grant(1)).unwrap();
    assert_eq!(book.spend(checked), Err(TokenRefusal::Unknown));
}

#[test]
fn a_token_ends_with_its_policy() {
    let mut book = book(|_| {});
    let other = Attempt { policy: Digest::of(b"other"), ..Attempt::default() };
    assert_eq!(other.run(&mut book), Err(TokenRefusal::OtherPolicy));
    book.end_all();
    assert_eq!(Attempt::default().run(&mut book), Err(TokenRefusal::Unknown));
}

#[test]
fn the_tokens_of_a_peer_end_with_its_connection() {
    let mut book = book(|_| {});
    book.issue(START, Grant { peer: peer("box", 8), ..grant(2) }).unwrap();
    book.end_peer(&peer("box", 8));
    assert_eq!(book.len(), 1);
    assert_eq!(Attempt::default().run(&mut book), Ok(()));
}

#[test]
fn every_path_of_a_call_must_be_in_scope() {
    let mut book = book(|scope| scope.max_ops = NonZeroU32::MAX);
    let outside = |text| Err(TokenRefusal::OutsidePath(path(text)));
    assert_eq!(with_paths(&["src/a.rs", "src/b.rs"]).run(&mut book), Ok(()));
    assert_eq!(
        Attempt { nonce: 2, ..with_paths(&["src/a.rs", ".env"]) }.run(&mut book),
        outside(".env")
    );
    assert_eq!(
        Attempt { nonce: 2, ..with_paths(&["src/A.rs"]) }.run(&mut book),
        outside("src/A.rs")
    );
    assert_eq!(Attempt { nonce: 2, ..with_paths(&[]) }.run(&mut book), Err(TokenRefusal::NoPath));
}

#[test]
fn a_token_without_paths_covers_only_calls_without_paths() {
    let mut book = book(|scope| scope.paths.clear());
    assert_eq!(
        with_paths(&["src/a.rs"]).run(&mut book),
        Err(TokenRefusal::OutsidePath(path("src/a.rs")))
    );
    assert_eq!(with_paths(&[]).run(&mut book), Ok(()));
}

#[test]
fn a_syscall_is_compared_exactly() {
    let mut book = book(|_| {});
    for syscall in ["fs.write", "fs.rea", "fs.read ", "FS.READ", ""] {
        let attempt = Attempt { syscall, ..Attempt::default() };
        assert_eq!(attempt.run(&mut book), Err(TokenRefusal::OtherSyscall), "{syscall}");
    }
}

#[test]
fn a_limit_on_the_size_holds_also_for_a_size_that_is_not_known() {
    let mut book = book(|scope| scope.max_file_size = Some(ByteSize::from_bytes(10)));
    let sized = |file_size| Attempt { file_size, ..Attempt::default() };
    assert_eq!(sized(Some(11)).run(&mut book), Err(TokenRefusal::FileSize));
    assert_eq!(sized(None).run(&mut book), Err(TokenRefusal::FileSize));
    assert_eq!(sized(Some(10)).run(&mut book), Ok(()));
}

#[test]
fn a_scope_that_is_no_limit_is_not_issued() {
    let check = |change: fn(&mut TokenScope), error| {
        let mut grant = grant(1);
        change(&mut grant.scope);
        assert_eq!(TokenBook::default().issue(START, grant), Err(error));
    };
    check(|scope| scope.ttl = Span::from_ms(0), TokenError::NoTime);
    check(
        |scope| scope.ttl = Span::from_ms(3_600_001),
        TokenError::TooLong(Span::from_ms(3_600_001)),
    );
    check(
        |scope| scope.ttl = Span::from_ms(u64::MAX),
        TokenError::TooLong(Span::from_ms(u64::MAX)),
    );
    check(|scope| scope.syscall.clear(), TokenError::NoSyscall);
    check(|scope| scope.paths = vec![glob("a"); 257], TokenError::TooManyPaths(257));
}

#[test]
fn a_refused_grant_changes_nothing_and_an_id_is_given_once() {
    let mut book = book(|_| {});
    assert_eq!(with_nonce(7).run(&mut book), Ok(()));
    assert_eq!(book.issue(START, grant(1)), Err(TokenError::IdTaken));
    assert!(matches!(with_nonce(7).run(&mut book), Err(TokenRefusal::Replayed(_))));
}

#[test]
fn a_full_book_drops_expired_tokens_first_and_then_issues_no_more() {
    let mut book = TokenBook::default();
    let ids = SeededIds::new(1);
    let fresh = || Grant { id: TokenId::fresh(&ids).unwrap(), ..grant(0) };
    book.issue(START - 10, fresh()).unwrap();
    for _ in 1..MAX_LIVE_TOKENS {
        book.issue(START, fresh()).unwrap();
    }
    assert_eq!(book.issue(START, fresh()), Err(TokenError::Full));
    book.issue(START + 29_990, fresh()).unwrap();
    assert_eq!(book.issue(START + 29_990, fresh()), Err(TokenError::Full));
    book.issue(START + 30_000, fresh()).unwrap();
    assert_eq!(book.len(), 2);
}

#[test]
fn an_id_is_read_only_as_it_was_written_and_not_shown_in_a_log() {
    let ids = SeededIds::new(1);
    let id = TokenId::fresh(&ids).unwrap();
    assert_eq!(TokenId::parse(&id.expose()), Some(id));
    let shown = format!("{id:?}");
    assert!(id.expose().starts_with(shown.trim_end_matches('…')) && shown.chars().count() == 9);
    let plus = format!("+{}", "0".repeat(31));
    for text in ["", "0", plus.as_str(), &"F".repeat(32), &"0".repeat(33), &"é".repeat(16)] {
        assert_eq!(TokenId::parse(text), None, "{text}");
    }
}

#[test]
fn a_container_id_is_a_plain_word() {
    for text in ["", "-rm", ".hidden", "a b", "a/b", "a\n", "é", &"x".repeat(129)] {
        assert_eq!(ContainerId::parse(text), None, "{text:?}");
    }
    assert_eq!(ContainerId::parse("fluffy-1.a_b").unwrap().as_str(), "fluffy-1.a_b");
}

#[derive(Debug, Clone)]
enum Step {
    Issue { token: u8, peer: u32, ttl: u64, max_ops: u32 },
    Check { token: u8, peer: u32, nonce: u64 },
    Spend { which: usize },
    Move { by: i64 },
    End { token: u8 },
    EndPeer { peer: u32 },
    Expire,
}

fn step() -> impl Strategy<Value = Step> {
    let (token, peer) = (0..3_u8, 1..3_u32);
    prop_oneof![
        2 => (token.clone(), peer.clone(), 1..4_000_u64, 1..4_u32)
            .prop_map(|(token, peer, ttl, max_ops)| Step::Issue { token, peer, ttl, max_ops }),
        6 => (token.clone(), peer.clone(), 1..12_u64)
            .prop_map(|(token, peer, nonce)| Step::Check { token, peer, nonce }),
        5 => (0..3_usize).prop_map(|which| Step::Spend { which }),
        2 => (-1_500..3_000_i64).prop_map(|by| Step::Move { by }),
        1 => token.prop_map(|token| Step::End { token }),
        1 => peer.prop_map(|peer| Step::EndPeer { peer }),
        1 => Just(Step::Expire),
    ]
}

/// The model: every token ever issued, what it spent, and whether it is over.
#[derive(Default)]
struct Model {
    tokens: Vec<ModelToken>,
    latest: u64,
}

struct ModelToken {
    id: u8,
    peer: u32,
    expires: u64,
    max_ops: usize,
    nonces: Vec<u64>,
    expired: bool,
    ended: bool,
}

impl Model {
    /// What is expired or ended at any time is so for ever.
    fn see(&mut self, now: u64) {
        let fell_back = now + 1_000 < self.latest;
        self.latest = if fell_back { now } else { self.latest.max(now) };
        for token in &mut self.tokens {
            token.ended |= fell_back;
            token.expired |= self.latest >= token.expires;
        }
    }

    fn holder(&self, id: u8) -> Option<usize> {
        self.tokens.iter().rposition(|token| token.id == id && !token.ended)
    }

    fn covers(&self, id: u8, peer: u32, nonce: u64) -> Option<usize> {
        let at = self.holder(id)?;
        let token = &self.tokens[at];
        let ok = token.peer == peer
            && !token.expired
            && token.nonces.len() < token.max_ops
            && token.nonces.iter().all(|spent| *spent < nonce);
        ok.then_some(at)
    }
}

/// A check that was answered with yes, and what the model knew then.
struct Pending {
    checked: Checked,
    at: usize,
    spent: usize,
    nonce: u64,
}

struct Run {
    book: TokenBook,
    model: Model,
    pending: Vec<Pending>,
    now: u64,
}

impl Run {
    fn step(&mut self, step: Step) {
        match step {
            Step::Issue { token, peer, ttl, max_ops } => self.issue(token, peer, ttl, max_ops),
            Step::Check { token, peer, nonce } => self.check(token, peer, nonce),
            Step::Spend { which } => self.spend(which),
            Step::Move { by } => self.now = self.now.saturating_add_signed(by),
            Step::End { token } => {
                let there = self.model.holder(token);
                if let Some(at) = there {
                    self.model.tokens[at].ended = true;
                }
                assert_eq!(self.book.end(id(token)), there.is_some());
            }
            Step::EndPeer { peer: pid } => {
                let theirs = self.model.tokens.iter_mut().filter(|token| token.peer == pid);
                theirs.for_each(|token| token.ended = true);
                self.book.end_peer(&peer("box", pid));
            }
            Step::Expire => {
                self.model.see(self.now);
                let expired = self.model.tokens.iter_mut().filter(|token| token.expired);
                expired.for_each(|token| token.ended = true);
                self.book.expire(self.now);
            }
        }
        let live = self.model.tokens.iter().filter(|token| !token.ended).count();
        assert_eq!((self.book.len(), self.book.latest_ms), (live, self.model.latest));
    }

    fn issue(&mut self, token: u8, pid: u32, ttl: u64, max_ops: u32) {
        self.model.see(self.now);
        let mut grant = Grant { peer: peer("box", pid), ..grant(token) };
        grant.scope.ttl = Span::from_ms(ttl);
        grant.scope.max_ops = NonZeroU32::new(max_ops).unwrap();
        let issued = self.book.issue(self.now, grant);
        assert_eq!(issued.is_ok(), self.model.holder(token).is_none());
        if let Ok(issued) = issued {
            self.model.tokens.push(ModelToken {
                id: token,
                peer: pid,
                expires: issued.expires_ms,
                max_ops: max_ops as usize,
                nonces: Vec::new(),
                expired: false,
                ended: false,
            });
        }
    }

    fn check(&mut self, token: u8, pid: u32, nonce: u64) {
        self.model.see(self.now);
        let paths = [path("src/b.rs")];
        let call = TokenCall {
            token: id(token),
            nonce: NonZeroU64::new(nonce).unwrap(),
            syscall: "fs.read",
            paths: &paths,
            file_size: None,
        };
        let answer = self.book.check(self.now, &policy(), &peer("box", pid), &call);
        let expected = self.model.covers(token, pid, nonce);
        assert_eq!(answer.is_ok(), expected.is_some(), "{answer:?}");
        if let (Ok(checked), Some(at)) = (answer, expected) {
            let spent = self.model.tokens[at].nonces.len();
            self.pending.push(Pending { checked, at, spent, nonce });
        }
    }

    fn spend(&mut self, which: usize) {
        if which >= self.pending.len() {
            return;
        }
        let Pending { checked, at, spent, nonce } = self.pending.swap_remove(which);
        let token = &mut self.model.tokens[at];
        let expected = !token.ended && token.nonces.len() == spent;
        assert_eq!(self.book.spend(checked).is_ok(), expected);
        if expected {
            assert!(token.nonces.iter().all(|earlier| *earlier < nonce));
            token.nonces.push(nonce);
            assert!(token.nonces.len() <= token.max_ops);
        }
    }
}

proptest! {
    #[test]
    fn the_book_agrees_with_a_naive_model(steps in prop::collection::vec(step(), 1..80)) {
        let mut run =
            Run { book: TokenBook::default(), model: Model::default(), pending: vec![], now: START };
        for step in steps {
            run.step(step);
        }
    }
}

#[test]
fn what_expired_is_told_once() {
    let mut book = TokenBook::default();
    let first = book.issue(START, grant(1)).unwrap();
    assert_eq!(book.newly_expired(first.expires_ms - 1), []);
    assert_eq!(book.newly_expired(first.expires_ms), [first.id]);
    assert_eq!(book.newly_expired(first.expires_ms + 1), []);
}
