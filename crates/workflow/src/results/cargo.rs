//! `cargo test --no-fail-fast --message-format=json`: cargo's messages, then the text of libtest.
//!
//! Standard output begins with cargo's own messages (what was built from which file, and the compiler's
//! errors) up to `build-finished`; then each test binary prints one block, `running N tests` … `test
//! result: …`. Standard error says in the same order which binary runs. A binary that was built must run
//! exactly once and have exactly one block whose lines and sums agree; so a stray print of `test x ... ok`
//! (by a child process, say; libtest catches what a test prints itself) makes a contradiction. What
//! follows `failures:` is the output of tests and is read for messages only.
//!
//! A test is named by its target's root file and, as nextest does, by package, target and path. A doctest
//! is named by its file, item and place among the item's examples, because its line moves with every edit;
//! where a pattern left examples out, their places are not known and the line has to do.
//!
//! Test targets with a harness of their own do not print such blocks: they contradict, and so never pass.

mod blocks;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::missing::is_missing_linker;
use super::{Places, Report, ResultsError, Run, TestResult, failed, tail};
use blocks::{Block, read_blocks};

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Line {
    CompilerArtifact(Artifact),
    CompilerMessage {
        target: Target,
        message: Diagnostic,
    },
    BuildFinished {
        success: bool,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    target: Target,
    profile: Profile,
    executable: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
    src_path: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    #[serde(default)]
    rendered: Option<String>,
    message: String,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    is_primary: bool,
}

/// A built test binary: where its tests are said to be.
struct Binary {
    place: String,
    id: String,
}

pub(super) fn read(run: &Run<'_>, exit: i32, places: &Places<'_>) -> Result<Report, ResultsError> {
    let stdout = String::from_utf8_lossy(run.stdout);
    let mut report = Report::default();
    let mut build = Build { places, binaries: BTreeMap::new(), finished: None, errors: 0 };
    let mut lines = stdout.lines();
    for line in lines.by_ref() {
        if line.starts_with('{') {
            build.enter(line, &mut report)?;
        }
        if build.finished.is_some() {
            break;
        }
    }
    match build.finished {
        Some(true) if build.errors == 0 => {}
        Some(true) => return Err(ResultsError::contradiction("it was built with errors")),
        // Cargo gave up before or while building: a manifest, a lock file, the compiler.
        Some(false) | None => {
            if exit == 0 {
                return Err(ResultsError::contradiction("nothing was built, yet the code is 0"));
            }
            report.add_build(None, &tail(run.stderr));
            return Ok(report);
        }
    }
    let blocks = read_blocks(lines)?;
    let stderr = String::from_utf8_lossy(run.stderr);
    let heads = read_heads(&stderr, &build.binaries)?;
    if heads.binaries.len() != build.binaries.len() && exit == 0 {
        return Err(ResultsError::contradiction("not every test binary ran, yet the code is 0"));
    }
    assign(&heads, blocks, places, &mut report)?;
    Ok(report)
}

struct Build<'a> {
    places: &'a Places<'a>,
    /// By the file name of the executable, which holds a hash and is unique.
    binaries: BTreeMap<String, Binary>,
    finished: Option<bool>,
    errors: usize,
}

impl Build<'_> {
    fn enter(&mut self, line: &str, report: &mut Report) -> Result<(), ResultsError> {
        match serde_json::from_str(line).map_err(ResultsError::malformed)? {
            Line::CompilerArtifact(artifact) => self.built(artifact),
            Line::CompilerMessage { target, message } => {
                if message.level.starts_with("error") {
                    self.errors += 1;
                    self.error(&target, &message, report);
                }
                Ok(())
            }
            Line::BuildFinished { success } => {
                self.finished = Some(success);
                Ok(())
            }
            Line::Other => Ok(()),
        }
    }

    fn built(&mut self, artifact: Artifact) -> Result<(), ResultsError> {
        let Some(path) = artifact.executable.filter(|_| artifact.profile.test) else {
            return Ok(());
        };
        let binary = Binary {
            place: self.places.place(&artifact.target.src_path),
            id: binary_id(&artifact.package_id, &artifact.target),
        };
        if self.binaries.insert(file_name(&path).to_owned(), binary).is_some() {
            return Err(ResultsError::contradiction("a test binary was built twice"));
        }
        Ok(())
    }

    fn error(&self, target: &Target, message: &Diagnostic, report: &mut Report) {
        let text = message.rendered.as_deref().unwrap_or(&message.message);
        let mut found = false;
        for span in message.spans.iter().filter(|span| span.is_primary) {
            let file = self.places.file(&span.file_name);
            found |= file.is_some();
            report.add_build(file, text);
        }
        if !found {
            // The summary of errors that were told before names nobody.
            let is_summary = message.message.starts_with("aborting due to");
            let is_own = !is_missing_linker(&message.message) && !is_summary;
            let target = self.places.file(&target.src_path).filter(|_| is_own);
            report.add_build(target, text);
        }
    }
}

/// `package` for a library, `package::name` for a test, `package::bin/name` and so on for the others.
fn binary_id(package_id: &str, target: &Target) -> String {
    // `path+file:///p/beta#beta-pkg@0.1.0`, or `…/beta#0.1.0` where folder and package share a name.
    let (path, rest) = package_id.rsplit_once('#').unwrap_or((package_id, ""));
    let package = rest.split_once('@').map_or_else(|| file_name(path), |(name, _)| name);
    match target.kind.first().map_or("", String::as_str) {
        "test" => format!("{package}::{}", target.name),
        kind @ ("bin" | "example" | "bench") => format!("{package}::{kind}/{}", target.name),
        _ => package.to_owned(),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Which binaries ran, in order, and for how many crates doctests did.
struct Heads<'a> {
    binaries: Vec<&'a Binary>,
    doctests: usize,
}

/// Lines such as `     Running tests/it.rs (target/debug/deps/it-09de8d0c8d4ae0a8)`. One that names no
/// binary that was built is somebody's print.
fn read_heads<'a>(
    stderr: &str,
    built: &'a BTreeMap<String, Binary>,
) -> Result<Heads<'a>, ResultsError> {
    let mut heads = Heads { binaries: Vec::new(), doctests: 0 };
    let mut seen = BTreeSet::new();
    for line in stderr.lines() {
        if line.starts_with("   Doc-tests ") {
            heads.doctests += 1;
            continue;
        }
        let Some(rest) = line.strip_prefix("     Running ") else { continue };
        let path = rest.rsplit_once('(').and_then(|(_, path)| path.strip_suffix(')'));
        let Some((name, binary)) = path.and_then(|path| built.get_key_value(file_name(path)))
        else {
            continue;
        };
        if !seen.insert(name) {
            return Err(ResultsError::contradiction("a test binary ran twice"));
        }
        heads.binaries.push(binary);
    }
    Ok(heads)
}

/// Gives each block to its binary; what is left belongs to doctests, which cargo runs last.
fn assign(
    heads: &Heads<'_>,
    blocks: Vec<Block>,
    places: &Places<'_>,
    report: &mut Report,
) -> Result<(), ResultsError> {
    let mut blocks = blocks.into_iter();
    for binary in &heads.binaries {
        let Some(block) = blocks.next() else {
            // It died before it began.
            report.add(
                &binary.place,
                &format!("{} (start)", binary.id),
                failed("did not start"),
            )?;
            continue;
        };
        if block.finished {
            for part in ["start", "end"] {
                let name = format!("{} ({part})", binary.id);
                report.add_end(&binary.place, &name, block.tests.values());
            }
        }
        for (test, outcome) in block.tests {
            report.add(&binary.place, &format!("{} {test}", binary.id), outcome)?;
        }
        if !block.finished {
            let name = format!("{} (end)", binary.id);
            report.add(&binary.place, &name, failed("the test binary did not finish"))?;
        }
    }
    add_doctests(blocks.as_slice(), heads.doctests, places, report)
}

fn add_doctests(
    blocks: &[Block],
    crates: usize,
    places: &Places<'_>,
    report: &mut Report,
) -> Result<(), ResultsError> {
    if crates == 0 && !blocks.is_empty() {
        return Err(ResultsError::contradiction("more blocks of tests than binaries"));
    }
    let mut items: BTreeMap<(&str, &str), Vec<(u64, &TestResult)>> = BTreeMap::new();
    for (name, outcome) in blocks.iter().flat_map(|block| &block.tests) {
        let Some((file, item, line)) = doctest(name) else {
            return Err(ResultsError::contradiction("more blocks of tests than binaries"));
        };
        items.entry((file, item)).or_default().push((line, outcome));
    }
    if blocks.len() < crates || blocks.iter().any(|block| !block.finished) {
        // Without all of an item's examples their numbers would be wrong.
        return report.add(&places.directory(""), "(doctests)", failed("doctests did not finish"));
    }
    let outcomes = blocks.iter().flat_map(|block| block.tests.values());
    report.add_end(&places.directory(""), "(doctests)", outcomes);
    let filtered = blocks.iter().any(|block| block.filtered);
    for ((file, item), mut examples) in items {
        examples.sort();
        for (number, (line, outcome)) in (1..).zip(examples) {
            let name = match filtered {
                true => format!("doc {item} (line {line})"),
                false => format!("doc {item} #{number}"),
            };
            report.add(&places.place(file), &name, outcome.clone())?;
        }
    }
    Ok(())
}

/// `alpha/src/lib.rs - add (line 3)` as file, item and line.
fn doctest(name: &str) -> Option<(&str, &str, u64)> {
    let (file, rest) = name.split_once(" - ")?;
    let (item, line) = rest.rsplit_once("(line ")?;
    let line = line.strip_suffix(')')?.parse().ok()?;
    Some((file, item.trim(), line))
}
