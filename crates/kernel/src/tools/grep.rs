//! `search.grep`: lines that a regular expression matches, found by all processors together.
//!
//! **Invariant.** The answer depends on the files and the call alone, not on which thread was quicker: files are
//! handed out in the order of their paths, and what is told is counted from the front.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use fluffy_base::{Clock, Json, ProjectPath, SystemClock};
use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use regex_syntax::ast::parse::ParserBuilder;
use serde_json::{Map, Value, json};

use super::deadline::Deadline;
use super::glob::Pattern;
use super::reading::Reading;
use super::{Views, arguments};
use crate::files::on_all_processors;
use crate::{Failure, Found, ToolError, ToolSpec, TreeError, View, Walked};

/// How many matches are shown.
const MAX_SHOWN: usize = 200;

/// How many are counted.
const MAX_FOUND: usize = 2000;

/// How much of a line is shown.
const MAX_CHARS: usize = 300;

/// Where in it the match may begin; a match further behind is moved to the front.
const MAX_LEAD: usize = 200;

const MAX_PATTERN: usize = 4096;

const MAX_NESTING: u32 = 100;

/// What a compiled pattern may take. A hostile one (`(a{999}){999}`) is refused for a fraction of it.
const MAX_PROGRAM: usize = 2 * 1024 * 1024;

/// What a thread may remember while it searches; beyond that it is slower, not wrong.
const MAX_CACHE: usize = 8 * 1024 * 1024;

/// A file with a longer line is passed over.
const MAX_LINE: usize = 16 * 1024 * 1024;

/// A file of up to this size is searched in one piece.
const PIECE: usize = 64 * 1024;

/// How many files a thread takes at once.
const CHUNK: usize = 64;

/// Finds lines.
pub struct SearchGrep {
    views: Arc<dyn Views>,
    clock: Arc<dyn Clock>,
}

impl SearchGrep {
    /// On these files.
    pub fn new(views: Arc<dyn Views>) -> Self {
        Self { views, clock: Arc::new(SystemClock) }
    }

    #[cfg(test)]
    pub(super) fn with_clock(views: Arc<dyn Views>, clock: Arc<dyn Clock>) -> Self {
        Self { views, clock }
    }
}

impl Reading for SearchGrep {
    fn spec(&self) -> ToolSpec {
        let properties = json!({
            "pattern": {"type": "string", "description": "regular expression"},
            "path": {"type": "string"},
            "glob": {"type": "string", "description": "only files it names, e.g. `*.rs`"},
            "ignore_case": {"type": "boolean"},
        });
        let summary = "Finds lines in text files, without ignored ones";
        arguments::reading("search.grep", summary, properties, &["pattern"])
    }

    fn read(&self, params: &Json) -> Result<Value, Failure> {
        let deadline = Deadline::new(&self.clock);
        let ignore_case = arguments::flag(params, "ignore_case");
        let matcher = matcher(arguments::text(params, "pattern")?, ignore_case)?;
        let glob = params.value().get("glob").and_then(Value::as_str);
        let glob = glob.map(Pattern::parse).transpose()?;
        let directory = arguments::directory(params)?;
        let view = self.views.view();
        let walked = files(&view, directory.as_ref()).map_err(|error| arguments::told(&error))?;
        let search = Search {
            views: self.views.as_ref(),
            view: &view,
            files: &walked.files,
            directory: directory.as_ref(),
            glob,
            matcher,
            deadline,
            next: AtomicUsize::new(0),
            found: AtomicUsize::new(0),
            late: AtomicBool::new(false),
        };
        let parts = on_all_processors(|| search.work());
        if search.late.load(Ordering::Relaxed) {
            return Err(Deadline::error().into());
        }
        let mut chunks: Vec<_> = parts.into_iter().flatten().collect();
        chunks.sort_unstable_by_key(|chunk| chunk.number);
        Ok(answer(chunks, &walked))
    }
}

/// The files to be searched: one, or all beneath a directory.
fn files(view: &View, path: Option<&ProjectPath>) -> Result<Walked, TreeError> {
    match path {
        Some(file) if matches!(view.look(file)?, Some(Found::File { .. })) => {
            Ok(Walked { files: vec![file.clone()], ..Walked::default() })
        }
        directory => view.walk(directory),
    }
}

fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, ToolError> {
    if pattern.len() > MAX_PATTERN {
        return Err(ToolError(format!("the pattern has more than {MAX_PATTERN} bytes")));
    }
    // The matcher puts brackets around the pattern, and places in its errors are beside the mark; worse,
    // `a)|(b` is a pattern then.
    ParserBuilder::new().nest_limit(MAX_NESTING).build().parse(pattern).map_err(|e| invalid(&e))?;
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).crlf(true).case_insensitive(ignore_case);
    builder.size_limit(MAX_PROGRAM).dfa_size_limit(MAX_CACHE).nest_limit(MAX_NESTING);
    builder.build(pattern).map_err(|error| invalid(&error))
}

fn invalid(error: &dyn std::error::Error) -> ToolError {
    let text: String = error.to_string().chars().take(1000).collect();
    ToolError(format!("the pattern is not valid: {text}"))
}

/// One search, shared by the threads that do it.
struct Search<'a> {
    views: &'a dyn Views,
    view: &'a View,
    files: &'a [ProjectPath],
    directory: Option<&'a ProjectPath>,
    glob: Option<Pattern>,
    matcher: RegexMatcher,
    deadline: Deadline,
    /// The chunk that nobody took yet.
    next: AtomicUsize,
    /// Matches in the chunks that are done.
    found: AtomicUsize,
    late: AtomicBool,
}

/// What was found in some files that follow each other.
#[derive(Default)]
struct Chunk<'a> {
    number: usize,
    files: Vec<(&'a ProjectPath, Vec<String>)>,
    shown: usize,
    found: usize,
    denied: usize,
    unreadable: usize,
}

impl<'a> Search<'a> {
    /// Takes chunks until there are none left, or enough was found in those that were taken: they are the
    /// first ones, and each of them is searched to its end.
    fn work(&self) -> Vec<Chunk<'a>> {
        let mut reader = Reader::new();
        let mut chunks = Vec::new();
        while self.found.load(Ordering::Relaxed) < MAX_FOUND && !self.late.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(files) = self.files.chunks(CHUNK).nth(number) else { break };
            let mut chunk = Chunk { number, ..Chunk::default() };
            for path in files {
                self.search(path, &mut chunk, &mut reader);
            }
            self.found.fetch_add(chunk.found, Ordering::Relaxed);
            chunks.push(chunk);
        }
        chunks
    }

    fn search(&self, path: &'a ProjectPath, chunk: &mut Chunk<'a>, reader: &mut Reader) {
        // Asked first: whether a pattern names a denied file must not show in the number.
        if !self.views.may_read(path) {
            chunk.denied += 1;
            return;
        }
        if self.glob.as_ref().is_some_and(|glob| !glob.matches(path, self.directory)) {
            return;
        }
        if self.deadline.is_over() {
            self.late.store(true, Ordering::Relaxed);
            return;
        }
        let room = MAX_SHOWN.saturating_sub(chunk.shown);
        let mut lines =
            Lines { matcher: &self.matcher, room, shown: Vec::new(), found: 0, binary: false };
        match self.view.open(path) {
            Ok(file) => match reader.search(file, &mut lines, &self.deadline) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    self.late.store(true, Ordering::Relaxed);
                }
                Err(_) => {
                    chunk.unreadable += 1;
                    return;
                }
            },
            // Gone, or something else by now.
            Err(TreeError::Missing(_) | TreeError::NotAFile(_) | TreeError::Link { .. }) => {}
            Err(_) => chunk.unreadable += 1,
        }
        if lines.found > 0 && !lines.binary {
            chunk.found += lines.found;
            chunk.shown += lines.shown.len();
            chunk.files.push((path, lines.shown));
        }
    }
}

/// What a thread needs to search files one after the other.
struct Reader {
    small: Searcher,
    large: Searcher,
    buffer: Vec<u8>,
}

impl Reader {
    fn new() -> Self {
        let mut builder = SearcherBuilder::new();
        builder.line_terminator(LineTerminator::crlf()).line_number(true).bom_sniffing(false);
        let small = builder.build();
        builder.binary_detection(BinaryDetection::quit(0)).heap_limit(Some(MAX_LINE));
        Self { small, large: builder.build(), buffer: vec![0; PIECE] }
    }

    fn search(
        &mut self,
        mut file: impl Read,
        lines: &mut Lines<'_>,
        deadline: &Deadline,
    ) -> io::Result<()> {
        let matcher = lines.matcher;
        let mut filled = 0;
        while let Some(room) = self.buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
            match file.read(room)? {
                0 => break,
                read => filled += read,
            }
        }
        let piece = self.buffer.get(..filled).unwrap_or_default();
        if memchr::memchr(0, piece).is_some() {
            return Ok(());
        }
        if filled < PIECE {
            return self.small.search_slice(matcher, piece, lines);
        }
        self.large.search_reader(matcher, Timed { inner: piece.chain(file), deadline }, lines)
    }
}

/// A large file, which is not read any further when the time is up.
struct Timed<'a, R> {
    inner: R,
    deadline: &'a Deadline,
}

impl<R: Read> Read for Timed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.is_over() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let end = buffer.len().min(PIECE);
        self.inner.read(buffer.get_mut(..end).unwrap_or_default())
    }
}

/// What is found in one file.
struct Lines<'a> {
    matcher: &'a RegexMatcher,
    /// How many lines are still shown.
    room: usize,
    shown: Vec<String>,
    found: usize,
    binary: bool,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, line: &SinkMatch<'_>) -> io::Result<bool> {
        self.found += 1;
        if self.shown.len() < self.room {
            let number = line.line_number().unwrap_or_default();
            let text = self.excerpt(line.bytes());
            self.shown.push(format!("{number}: {text}"));
        }
        Ok(self.found < MAX_FOUND)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }
}

impl Lines<'_> {
    /// A line, or the part of it with the first match.
    fn excerpt(&self, line: &[u8]) -> String {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let at = self.matcher.find(line).ok().flatten().map_or(0, |found| found.start());
        let mut from = if at > MAX_LEAD { at - MAX_LEAD / 2 } else { 0 };
        while line.get(from).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {
            from += 1;
        }
        let rest = line.get(from..).unwrap_or_default();
        // A character has at most four bytes.
        let near = rest.get(..rest.len().min(4 * (MAX_CHARS + 1))).unwrap_or_default();
        let near = String::from_utf8_lossy(near);
        let lead = if from > 0 { "…" } else { "" };
        let room = MAX_CHARS - usize::from(from > 0);
        if near.chars().nth(room).is_none() {
            return format!("{lead}{near}");
        }
        let text: String = near.chars().take(room - 1).collect();
        format!("{lead}{text}…")
    }
}

/// What is told: the first matches, and how many there are.
fn answer(chunks: Vec<Chunk<'_>>, walked: &Walked) -> Value {
    let (mut files, mut shown, mut total) = (Vec::new(), 0, 0);
    let (mut denied, mut unreadable) = (0, walked.unreadable);
    for chunk in chunks {
        for (path, mut lines) in chunk.files {
            lines.truncate(MAX_SHOWN - shown);
            shown += lines.len();
            if !lines.is_empty() {
                files.push(json!({"path": path, "lines": lines}));
            }
        }
        total += chunk.found;
        denied += chunk.denied;
        unreadable += chunk.unreadable;
        // Whether later chunks were searched as well depends on the threads.
        if total >= MAX_FOUND {
            break;
        }
    }
    let mut answer = Map::new();
    answer.insert("shown".to_owned(), shown.into());
    answer.insert("total".to_owned(), total.min(MAX_FOUND).into());
    if total >= MAX_FOUND {
        answer.insert("stopped".to_owned(), true.into());
    }
    arguments::count(&mut answer, "denied", denied);
    arguments::count(&mut answer, "unnamed", walked.unnamed);
    arguments::count(&mut answer, "unreadable", unreadable);
    answer.insert("matches".to_owned(), files.into());
    answer.into()
}
