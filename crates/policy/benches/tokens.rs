//! What a token costs: checked and spent, in a book with one token and in a full one, beside the bare
//! look-up in a map of the same size.
//!
//! `cargo bench --package fluffy-policy --bench tokens`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use divan::{Bencher, black_box};
use fluffy_base::{Digest, ProjectPath, SeededIds};
use fluffy_policy::{
    ContainerId, DEFAULT_TOKEN_TTL, Glob, Grant, MAX_LIVE_TOKENS, Peer, TokenBook, TokenCall,
    TokenId, TokenScope,
};

const NOW: u64 = 1_794_780_160_000;

fn main() {
    divan::main();
}

fn peer() -> Peer {
    Peer { container: ContainerId::parse("box").unwrap(), pid: NonZeroU32::new(7).unwrap() }
}

fn path(number: usize) -> ProjectPath {
    ProjectPath::parse(&format!("crates/policy/src/file{number}.rs")).unwrap()
}

fn ids(count: usize) -> Vec<TokenId> {
    let source = SeededIds::new(1);
    (0..count).map(|_| TokenId::fresh(&source).unwrap()).collect()
}

fn book(ids: &[TokenId]) -> TokenBook {
    let mut book = TokenBook::default();
    for id in ids {
        let scope = TokenScope {
            syscall: "fs.read".to_owned(),
            paths: (0..4).map(|number| Glob::parse(path(number).as_str()).unwrap()).collect(),
            max_ops: NonZeroU32::MAX,
            ttl: DEFAULT_TOKEN_TTL,
            max_file_size: None,
        };
        let grant = Grant { policy: Digest::of(b"policy"), peer: peer(), scope, id: *id };
        book.issue(NOW, grant).unwrap();
    }
    book
}

#[divan::bench(args = [1, MAX_LIVE_TOKENS])]
fn check_and_spend(bencher: Bencher<'_, '_>, live: usize) {
    let ids = ids(live);
    let mut book = book(&ids);
    let (policy, peer, paths) = (Digest::of(b"policy"), peer(), [path(3)]);
    let mut turn = 0_usize;
    bencher.bench_local(|| {
        turn += 1;
        let call = TokenCall {
            token: *ids.get(turn % live).unwrap(),
            nonce: NonZeroU64::new(turn as u64).unwrap(),
            syscall: "fs.read",
            paths: &paths,
            file_size: None,
        };
        let checked = book.check(black_box(NOW), &policy, &peer, &call).unwrap();
        book.spend(checked).unwrap();
    });
}

#[divan::bench(args = [1, MAX_LIVE_TOKENS])]
fn bare_two_lookups(bencher: Bencher<'_, '_>, live: usize) {
    let ids = ids(live);
    let mut map: BTreeMap<TokenId, u64> = ids.iter().map(|id| (*id, 0)).collect();
    let mut turn = 0_usize;
    bencher.bench_local(|| {
        turn += 1;
        let id = ids.get(turn % live).unwrap();
        black_box(map.get(id));
        *map.get_mut(id).unwrap() += 1;
    });
}
