//! What it costs to ask a set of patterns about one path, beside `globset` in the same run.
//!
//! `cargo bench --package fluffy-policy`
//!
//! One iteration is one lookup. The paths go round: three quarters of them are matched by a rule
//! somewhere in the set, so that neither the branch predictor nor the caches know what comes next.

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use std::fmt;

use divan::{Bencher, black_box};
use fluffy_base::ProjectPath;
use fluffy_policy::{Glob, GlobIndex};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

const RULES: [usize; 4] = [10, 100, 1_000, 10_000];
const PATHS: usize = 1_024;

fn main() {
    divan::main();
}

/// How all rules of a set are written; `N` is the rule's number.
#[derive(Clone, Copy)]
enum Shape {
    /// `dirN/**`
    Below,
    /// `dirN/**/*.json`
    BelowExtension,
    /// `dirM/fileN.rs`, ten files in each directory
    File,
    /// `*.extN`
    Extension,
    /// `**/nameN/**`
    Segment,
    /// `**/nameN/index.js`, of which the last part is in every rule
    SharedName,
}

impl Shape {
    const ALL: [Self; 6] = [
        Self::Below,
        Self::BelowExtension,
        Self::File,
        Self::Extension,
        Self::Segment,
        Self::SharedName,
    ];

    fn pattern(self, n: usize) -> String {
        match self {
            Self::Below => format!("dir{n}/**"),
            Self::BelowExtension => format!("dir{n}/**/*.json"),
            Self::File => format!("dir{}/file{n}.rs", n / 10),
            Self::Extension => format!("*.ext{n}"),
            Self::Segment => format!("**/name{n}/**"),
            Self::SharedName => format!("**/name{n}/index.js"),
        }
    }

    /// A path that the rule of this number matches.
    fn path(self, n: usize) -> String {
        match self {
            Self::Below | Self::BelowExtension => format!("dir{n}/src/data/file.json"),
            Self::File => format!("dir{}/file{n}.rs", n / 10),
            Self::Extension => format!("src/data/deep/file.ext{n}"),
            Self::Segment => format!("src/data/name{n}/file.json"),
            Self::SharedName => format!("src/data/name{n}/index.js"),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Below => "dirN/**",
            Self::BelowExtension => "dirN/**/*.json",
            Self::File => "dirM/fileN.rs",
            Self::Extension => "*.extN",
            Self::Segment => "**/nameN/**",
            Self::SharedName => "**/nameN/index.js",
        })
    }
}

/// A shape and a number of rules.
#[derive(Clone, Copy)]
struct Set(Shape, usize);

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.0, self.1)
    }
}

fn sets() -> impl Iterator<Item = Set> {
    Shape::ALL.into_iter().flat_map(|shape| RULES.map(|count| Set(shape, count)))
}

fn paths(Set(shape, count): Set) -> Vec<ProjectPath> {
    let path = |at: usize| {
        // A step that is prime to every count visits the rules out of order.
        let text = shape.path(at * 7_919 % count);
        let text =
            if at % 4 == 3 { format!("other/{text}.txt").replace("name", "no") } else { text };
        ProjectPath::parse(&text).unwrap()
    };
    (0..PATHS).map(path).collect()
}

fn our_index(Set(shape, count): Set) -> GlobIndex {
    GlobIndex::new((0..).zip((0..count).map(|n| Glob::parse(&shape.pattern(n)).unwrap())))
}

fn their_set(Set(shape, count): Set) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for n in 0..count {
        // There a pattern without a slash matches at any depth only when it says so.
        let pattern = shape.pattern(n);
        let pattern = if pattern.contains('/') { pattern } else { format!("**/{pattern}") };
        set.add(GlobBuilder::new(&pattern).literal_separator(true).build().unwrap());
    }
    set.build().unwrap()
}

#[divan::bench(args = sets(), sample_count = 200, sample_size = 512)]
fn index(bencher: Bencher<'_, '_>, set: Set) {
    let (index, paths) = (our_index(set), paths(set));
    let mut round = paths.iter().cycle();
    let mut ids = Vec::with_capacity(64);
    bencher.bench_local(|| {
        let path = round.next().unwrap();
        index.matching(black_box(path), &mut ids);
        black_box(&ids);
    });
}

/// Up to 1,000 rules: for 10,000 like `**/nameN/**` it asks for 35 GB at the first lookup.
#[divan::bench(args = sets().filter(|set| set.1 <= 1_000), sample_count = 20, sample_size = 64)]
fn globset(bencher: Bencher<'_, '_>, set: Set) {
    let (globs, paths) = (their_set(set), paths(set));
    let mut round = paths.iter().cycle();
    let mut ids = Vec::with_capacity(64);
    bencher.bench_local(|| {
        let path = round.next().unwrap();
        globs.matches_into(black_box(path.as_str()), &mut ids);
        black_box(&ids);
    });
}

#[divan::bench(args = sets().filter(|set| set.1 >= 1_000), sample_count = 5)]
fn parse_and_build(bencher: Bencher<'_, '_>, set: Set) {
    bencher.bench_local(|| our_index(set));
}
