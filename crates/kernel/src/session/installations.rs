//! Finds the installations that a command begins with: `cd app && npm install && npm test`.
//!
//! **Invariant.** A part of a line is taken for an installation only where every character of it stands for itself in any
//! shell. What comes behind the first other part is left as it was typed.

use fluffy_base::Json;
use fluffy_dependencies::{InstallRequest, PackageSpec, recognise};
use serde_json::{Map, Value, json};

/// The installations that a command begins with, and what is left of it.
#[derive(Debug)]
pub(super) struct Installations {
    /// Arguments for `deps.install`, in order; at least one.
    pub(super) requests: Vec<Json>,
    /// Arguments for `shell.run`, if more is to be done.
    pub(super) rest: Option<Json>,
}

/// The installations of a call of `shell.run`, by its arguments.
pub(super) fn installations_of(params: &Value) -> Option<Installations> {
    let program = params.get("command").and_then(Value::as_str)?;
    let args = params.get("args").and_then(Value::as_array).into_iter().flatten();
    let args: Vec<String> =
        args.map(|arg| arg.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let cwd = params.get("cwd").and_then(Value::as_str).map(str::to_owned);
    match (program.rsplit('/').next(), args.as_slice()) {
        (Some("bash" | "sh" | "dash"), [option, line])
            if ["-c", "-lc"].contains(&option.as_str()) =>
        {
            of_line(line, cwd, params)
        }
        (_, []) => of_line(program, cwd, params),
        _program_with_arguments => {
            let request = recognise(program, &args)?;
            Some(Installations { requests: vec![arguments(request, cwd.as_deref())?], rest: None })
        }
    }
}

/// Takes installations, and changes of the directory before them, from the beginning of a line.
fn of_line(line: &str, mut cwd: Option<String>, params: &Value) -> Option<Installations> {
    let mut requests = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let end =
            ["&&", ";", "\n"].iter().filter_map(|sign| Some((rest.find(sign)?, sign.len()))).min();
        let (part, behind) = match end {
            Some((at, length)) => (rest.get(..at)?, rest.get(at + length..)?),
            None => (rest, ""),
        };
        let Some(words) = plain_words(without_filters(part)) else { break };
        let (program, args) = words.split_first()?;
        match (program.as_str(), args) {
            ("cd", [directory]) if cwd.is_none() && is_below(directory) => {
                cwd = Some(directory.clone())
            }
            _other => match recognise(program, args) {
                Some(request) => requests.push(arguments(request, cwd.as_deref())?),
                None => break,
            },
        }
        rest = behind.trim();
    }
    if requests.is_empty() {
        return None;
    }
    let rest = (!rest.is_empty()).then(|| {
        let mut left = params.as_object().cloned().unwrap_or_default();
        left.remove("args");
        left.insert("command".to_owned(), rest.into());
        if let Some(cwd) = &cwd {
            left.insert("cwd".to_owned(), cwd.clone().into());
        }
        Json::new(Value::Object(left))
    });
    Some(Installations { requests, rest: rest.transpose().ok()? })
}

/// A part without what only shortens its output: nobody needs to shorten the answer of an installation.
fn without_filters(part: &str) -> &str {
    let mut part = part.trim();
    if let Some((before, filter)) = part.split_once('|') {
        let words = plain_words(filter);
        let shortens = |words: Vec<String>| {
            words.first().is_some_and(|word| ["tail", "head", "cat"].contains(&word.as_str()))
        };
        if words.is_some_and(shortens) {
            part = before.trim_end();
        }
    }
    for end in ["2>&1", ">/dev/null", "> /dev/null", "2>/dev/null", "2> /dev/null", "2>&1"] {
        part = part.strip_suffix(end).map_or(part, str::trim_end);
    }
    part
}

/// The words of a part that means the same to any shell and to none.
fn plain_words(part: &str) -> Option<Vec<String>> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " \t@/._-+:,^".contains(c) || c == '=';
    let words: Vec<String> = part.split_whitespace().map(str::to_owned).collect();
    // `NAME=value` before a program sets a variable.
    let fits =
        part.chars().all(is_plain) && words.first().is_some_and(|first| !first.contains('='));
    fits.then_some(words)
}

fn is_below(directory: &str) -> bool {
    !directory.starts_with(['/', '-']) && !directory.split('/').any(|part| part == "..")
}

/// A request as arguments of `deps.install`.
fn arguments(request: InstallRequest, cwd: Option<&str>) -> Option<Json> {
    let add: Vec<String> = request.add.iter().map(PackageSpec::text).collect();
    let mut members = Map::new();
    members.insert("manager".to_owned(), json!(request.manager));
    let lists = [("add", add), ("remove", request.remove)];
    for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
        members.insert(name.to_owned(), json!(list));
    }
    if request.dev {
        members.insert("dev".to_owned(), true.into());
    }
    if let Some(cwd) = cwd {
        members.insert("cwd".to_owned(), cwd.into());
    }
    Json::new(Value::Object(members)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: Value) -> Option<String> {
        let Installations { requests, rest } = installations_of(&params)?;
        let requests: Vec<&str> = requests.iter().map(Json::canonical).collect();
        let rest = rest.map(|rest| format!(" then {}", rest.canonical())).unwrap_or_default();
        Some(format!("{}{rest}", requests.join(" ")))
    }

    #[test]
    fn installations_are_taken_from_the_beginning_of_a_line() {
        for (params, expected) in [
            (
                json!({"command": "npm", "args": ["install", "express"]}),
                r#"{"add":["express"],"manager":"npm"}"#,
            ),
            (json!({"command": "npm install express"}), r#"{"add":["express"],"manager":"npm"}"#),
            (
                json!({"command": "bash", "args": ["-c", "npm ci && npm test | tail"]}),
                r#"{"manager":"npm"} then {"command":"npm test | tail"}"#,
            ),
            (
                json!({"command": "cd app && npm install; node x.js", "timeout_ms": 5}),
                r#"{"cwd":"app","manager":"npm"} then {"command":"node x.js","cwd":"app","timeout_ms":5}"#,
            ),
            (
                json!({"command": "npm install express 2>&1 | tail -5"}),
                r#"{"add":["express"],"manager":"npm"}"#,
            ),
            (
                json!({"command": "python3 -m venv .venv && .venv/bin/pip install flask"}),
                r#"{"manager":"pip"} {"add":["flask"],"manager":"pip"}"#,
            ),
        ] {
            assert_eq!(read(params).as_deref(), Some(expected));
        }
    }

    #[test]
    fn what_a_shell_would_read_otherwise_is_left_to_the_command() {
        for line in [
            "npm install $PACKAGE",
            "npm install `x`",
            "npm install 'a b'",
            "npm test && npm install",
            "npm install > log",
            "X=1 npm install",
            "npm install | tee x",
            "npm install & ",
            "cd .. && npm install",
            "cd /x && npm install",
            "(npm install)",
            "npm install {a,b}",
            "npm install *",
            "echo npm install",
        ] {
            assert_eq!(read(json!({ "command": line })), None, "{line}");
        }
    }
}
