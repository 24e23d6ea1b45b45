//! The lines in front of the hunks: which file, and what becomes of it.

use fluffy_base::ProjectPath;

use super::PatchError;
use super::lines::Lines;

/// What a patch says about one file before the hunks.
pub(super) struct Head {
    pub(super) path: ProjectPath,
    pub(super) effect: Effect,
    /// Whether the file can be executed afterwards; nothing if that stays as it is.
    pub(super) executable: Option<bool>,
    pub(super) has_hunks: bool,
}

/// What becomes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Create,
    Change,
    Delete,
}

/// What git says beside the names.
#[derive(Default)]
struct Extended {
    /// The name in `diff --git`; nothing in a plain diff, which has no such line.
    named: Option<Vec<u8>>,
    created: Option<bool>,
    deleted: Option<bool>,
    old_mode: Option<bool>,
    new_mode: Option<bool>,
}

/// The two names in front of the hunks; nothing stands for `/dev/null`.
struct Names {
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
}

impl Head {
    /// Reads the lines up to the first hunk.
    pub(super) fn read(lines: &mut Lines<'_>) -> Result<Self, PatchError> {
        let first = lines.number + 1;
        let git = lines.peek().and_then(|line| line.strip_prefix(b"diff --git "));
        let extended = match git {
            Some(names) => {
                lines.advance();
                Extended::read(names, lines)?
            }
            None => Extended::default(),
        };
        let names = match lines.peek() {
            Some(line) if line.starts_with(b"--- ") => Some(Names::read(lines)?),
            Some(line) if git.is_none() => return Err(unexpected(line, lines)),
            Some(_) | None => None,
        };
        let has_hunks = names.is_some();
        let (effect, name) = extended.join(names, lines)?;
        let path = path_of(&name, first)?;
        let executable = match effect {
            Effect::Create => Some(extended.created.unwrap_or(false)),
            Effect::Change => extended.new_mode,
            Effect::Delete => None,
        };
        if has_hunks && !lines.peek().is_some_and(|line| line.starts_with(b"@@ ")) {
            lines.advance();
            return Err(lines.error("hunks follow the names of a file"));
        }
        Ok(Self { path, effect, executable, has_hunks })
    }
}

impl Extended {
    fn read(names: &[u8], lines: &mut Lines<'_>) -> Result<Self, PatchError> {
        let first = lines.number;
        let mut head = Self { named: same_name(names), ..Self::default() };
        while let Some(line) = lines.peek() {
            if line.starts_with(b"diff --git ") || line.starts_with(b"--- ") {
                break;
            }
            lines.advance();
            if let Some(mode) = line.strip_prefix(b"old mode ") {
                set(&mut head.old_mode, mode, lines)?;
            } else if let Some(mode) = line.strip_prefix(b"new mode ") {
                set(&mut head.new_mode, mode, lines)?;
            } else if let Some(mode) = line.strip_prefix(b"new file mode ") {
                set(&mut head.created, mode, lines)?;
            } else if let Some(mode) = line.strip_prefix(b"deleted file mode ") {
                set(&mut head.deleted, mode, lines)?;
            } else if let Some(index) = line.strip_prefix(b"index ") {
                check_index(index, lines)?;
            } else {
                return Err(refused(line, lines));
            }
        }
        if head.named.is_none() {
            return Err(PatchError::Unsupported { line: first, what: "a file with two names" });
        }
        if head.old_mode.is_some() != head.new_mode.is_some() {
            return Err(lines.error("an old mode comes with a new mode"));
        }
        let said = [head.created, head.deleted, head.new_mode];
        if said.iter().flatten().count() > 1 {
            return Err(lines.error("a file is created, deleted or changed in mode, one of these"));
        }
        Ok(head)
    }

    /// What all lines together say, if they do not contradict each other.
    fn join(
        &self,
        names: Option<Names>,
        lines: &Lines<'_>,
    ) -> Result<(Effect, Vec<u8>), PatchError> {
        let marked = match (self.created, self.deleted) {
            (Some(_), _) => Some(Effect::Create),
            (None, Some(_)) => Some(Effect::Delete),
            (None, None) => None,
        };
        let Some(names) = names else {
            let changed = self.new_mode.map(|_| Effect::Change);
            let effect = marked.or(changed).ok_or_else(|| lines.error("no change is given"))?;
            let named = self.named.clone();
            return Ok((effect, named.ok_or_else(|| lines.error("no file is named"))?));
        };
        let (effect, name) = names.meaning(lines)?;
        // Without its mark, git takes `/dev/null` of a git diff for the name of a file.
        let agrees = |effect| match marked {
            Some(marked) => marked == effect,
            None => effect == Effect::Change || self.named.is_none(),
        };
        let contradicts = |effect, name: &Vec<u8>| {
            !agrees(effect)
                || self.new_mode.is_some() && effect != Effect::Change
                || self.named.as_ref().is_some_and(|named| named != name)
        };
        if contradicts(effect, &name) {
            return Err(lines.error("the names contradict the lines above them"));
        }
        Ok((effect, name))
    }
}

impl Names {
    fn read(lines: &mut Lines<'_>) -> Result<Self, PatchError> {
        let old = Self::name(b"--- ", b"a/", lines)?;
        let new = Self::name(b"+++ ", b"b/", lines)?;
        Ok(Self { old, new })
    }

    fn name(
        sign: &[u8],
        side: &[u8],
        lines: &mut Lines<'_>,
    ) -> Result<Option<Vec<u8>>, PatchError> {
        let line = lines.peek().and_then(|line| line.strip_prefix(sign));
        lines.advance();
        let line = line.ok_or_else(|| lines.error("`--- a/name` and `+++ b/name` go together"))?;
        // Behind a tab stands a date, or nothing where the name has spaces.
        let name = line.split(|byte| *byte == b'\t').next().unwrap_or_default();
        if name == b"/dev/null" {
            return Ok(None);
        }
        let name = match name.strip_prefix(b"\"") {
            Some(quoted) => match unquote(quoted) {
                Some((name, [])) => name,
                Some(_) | None => return Err(lines.error("the quoted name is not well-formed")),
            },
            None => name.to_vec(),
        };
        let bare = name.strip_prefix(side);
        let bare = bare.ok_or_else(|| lines.error("a name starts with `a/` or `b/`"))?;
        Ok(Some(bare.to_vec()))
    }

    fn meaning(self, lines: &Lines<'_>) -> Result<(Effect, Vec<u8>), PatchError> {
        match (self.old, self.new) {
            (None, Some(new)) => Ok((Effect::Create, new)),
            (Some(old), None) => Ok((Effect::Delete, old)),
            (Some(old), Some(new)) if old == new => Ok((Effect::Change, new)),
            (Some(_), Some(_)) => {
                Err(PatchError::Unsupported { line: lines.number, what: "a renaming" })
            }
            (None, None) => Err(lines.error("no file is named")),
        }
    }
}

fn path_of(name: &[u8], line: usize) -> Result<ProjectPath, PatchError> {
    let text = str::from_utf8(name)
        .map_err(|_| PatchError::Syntax { line, what: "the name is not UTF-8" })?;
    let path = ProjectPath::parse(text).map_err(|source| PatchError::Path { line, source })?;
    if path.as_str() == text {
        Ok(path)
    } else {
        Err(PatchError::Syntax { line, what: "the name is not in its normal form" })
    }
}

fn set(slot: &mut Option<bool>, mode: &[u8], lines: &Lines<'_>) -> Result<(), PatchError> {
    let executable = executable(mode, lines)?;
    match slot.replace(executable) {
        None => Ok(()),
        Some(_) => Err(lines.error("the mode is given twice")),
    }
}

fn executable(mode: &[u8], lines: &Lines<'_>) -> Result<bool, PatchError> {
    match mode {
        b"100644" => Ok(false),
        b"100755" => Ok(true),
        b"120000" => Err(PatchError::Unsupported { line: lines.number, what: "a symbolic link" }),
        b"160000" => Err(PatchError::Unsupported { line: lines.number, what: "a submodule" }),
        _ => Err(lines.error("a mode is 100644 or 100755")),
    }
}

/// `1234567..89abcde 100644`. The hashes say nothing that the hunks do not show.
fn check_index(index: &[u8], lines: &Lines<'_>) -> Result<(), PatchError> {
    let mut words = index.splitn(2, |byte| *byte == b' ');
    let hashes = words.next().unwrap_or_default();
    if hashes.iter().any(|byte| !byte.is_ascii_hexdigit() && *byte != b'.') {
        return Err(lines.error("an index line has two hashes and a mode"));
    }
    words.next().map_or(Ok(()), |mode| executable(mode, lines).map(|_| ()))
}

/// The error for a line that was read and has no place in a head.
fn refused(line: &[u8], lines: &Lines<'_>) -> PatchError {
    let known: [(&[u8], &str); 7] = [
        (b"rename ", "a renaming"),
        (b"similarity ", "a renaming or copy"),
        (b"copy ", "a copy"),
        (b"dissimilarity ", "a rewriting"),
        (b"GIT binary patch", "a binary change"),
        (b"Binary files ", "a binary change"),
        (b"diff --cc ", "a merge of several parents"),
    ];
    match known.into_iter().find(|(start, _)| line.starts_with(start)) {
        Some((_, what)) => PatchError::Unsupported { line: lines.number, what },
        None => lines.error("this line has no place here"),
    }
}

/// The error for the next line, which should have started a file.
fn unexpected(line: &[u8], lines: &mut Lines<'_>) -> PatchError {
    lines.advance();
    refused(line, lines)
}

/// The name in `a/name b/name`, which is unambiguous only where both are the same.
fn same_name(names: &[u8]) -> Option<Vec<u8>> {
    let (old, new) = match names.strip_prefix(b"\"") {
        Some(quoted) => {
            let (old, rest) = unquote(quoted)?;
            match unquote(rest.strip_prefix(b" \"")?)? {
                (new, []) => (old, new),
                _ => return None,
            }
        }
        None => {
            let (old, new) = names.split_at_checked(names.len() / 2)?;
            (old.to_vec(), new.strip_prefix(b" ")?.to_vec())
        }
    };
    let name = old.strip_prefix(b"a/")?;
    (Some(name) == new.strip_prefix(b"b/")).then(|| name.to_vec())
}

/// A name as git quotes it, from behind the opening quote, and what follows the closing one.
fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut name = Vec::new();
    let mut rest = text;
    loop {
        let (byte, behind) = rest.split_first()?;
        rest = behind;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (byte, behind) = unescape(rest)?;
                name.push(byte);
                rest = behind;
            }
            byte => name.push(*byte),
        }
    }
}

fn unescape(text: &[u8]) -> Option<(u8, &[u8])> {
    if let Some((digits, rest)) = text.split_at_checked(3)
        && digits.iter().all(|digit| matches!(digit, b'0'..=b'7'))
    {
        let number = u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()?;
        return Some((number, rest));
    }
    let (byte, rest) = text.split_first()?;
    let byte = match byte {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        b'"' | b'\\' => *byte,
        _ => return None,
    };
    Some((byte, rest))
}
