//! What the `test` script of a `package.json` runs.
//!
//! Only a script that is one plain call is understood; one with anything that a shell would interpret is
//! run as it is, and then only its exit code counts.

/// What a script turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Script {
    /// What `npm init` writes: there are no tests.
    Absent,
    Jest,
    Vitest,
    /// With the words that stand beside `--test`; a single file that is run without it is its own test.
    Node(Vec<String>),
    /// Anything else.
    Other,
}

pub(super) fn understand(script: &str) -> Script {
    let script = script.trim();
    if script.is_empty() || script.contains("no test specified") {
        return Script::Absent;
    }
    if script.contains(|c: char| "&|;<>$`\\(){}~\n".contains(c)) {
        return Script::Other;
    }
    let Some(words) = words(script) else { return Script::Other };
    let mut words = words.into_iter().skip_while(|word| {
        // `cross-env NODE_ENV=test jest` and `npx jest` are calls of jest, which sets that itself.
        matches!(*word, "npx" | "cross-env" | "NODE_ENV=test")
    });
    let program = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    match program.rsplit('/').next().unwrap_or(program) {
        // A jest that is told where its configuration is would be called without it.
        "jest" if plain(&rest) => Script::Jest,
        "vitest" if plain(&rest) => Script::Vitest,
        "node" => node(&rest),
        _ => Script::Other,
    }
}

/// The words of a call. Quotes stand around whole words, or it is not understood.
fn words(script: &str) -> Option<Vec<&str>> {
    let mut words = Vec::new();
    let mut rest = script.trim_start();
    while let Some(first) = rest.chars().next() {
        let quote = matches!(first, '"' | '\'').then_some(first);
        let (word, after) = match quote {
            Some(quote) => rest.get(1..)?.split_once(quote)?,
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        let alone = after.is_empty() || after.starts_with(char::is_whitespace);
        if !alone || (quote.is_none() && word.contains(['"', '\''])) {
            return None;
        }
        words.push(word);
        rest = after.trim_start();
    }
    Some(words)
}

/// Whether the options change nothing about which tests run and how.
fn plain(words: &[&str]) -> bool {
    let harmless = |word: &&str| {
        let (name, _) = word.split_once('=').unwrap_or((word, ""));
        matches!(
            name,
            "run"
                | "--run"
                | "--ci"
                | "--coverage"
                | "--verbose"
                | "--silent"
                | "--colors"
                | "--passWithNoTests"
                | "--runInBand"
                | "-i"
                | "--watchAll"
                | "--no-watch"
                | "--globals"
                | "--reporter"
                | "--watch"
        )
    };
    words.iter().all(harmless)
}

/// Keeps what tells node how to load the tests and which; how they are run and reported is ours. Without
/// isolation the tests would run in the process that reports on them.
fn node(words: &[&str]) -> Script {
    if !words.contains(&"--test") && !is_one_file(words) {
        return Script::Other;
    }
    let mut kept = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (name, value) =
            word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
        match name {
            "--test" | "--watch" | "--experimental-test-coverage" => {}
            "--test-reporter"
            | "--test-reporter-destination"
            | "--test-isolation"
            | "--experimental-test-isolation" => {
                if value.is_none() {
                    words.next();
                }
            }
            _ => kept.push((*word).to_owned()),
        }
    }
    Script::Node(kept)
}

/// Whether this is one file after nothing but options. What stands after a file would be the file's own.
fn is_one_file(words: &[&str]) -> bool {
    let is_file = |word: &str| {
        !word.starts_with('-') && [".js", ".mjs", ".cjs"].iter().any(|end| word.ends_with(end))
    };
    match words.split_last() {
        Some((last, before)) => is_file(last) && before.iter().all(|word| word.starts_with("--")),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, expected: &Script) {
        assert_eq!(understand(script), *expected, "{script}");
    }

    #[test]
    fn a_plain_call_of_a_known_runner_is_understood() {
        check("jest", &Script::Jest);
        check("npx jest --ci --coverage", &Script::Jest);
        check("cross-env NODE_ENV=test jest", &Script::Jest);
        check("./node_modules/.bin/vitest run", &Script::Vitest);
        check("vitest", &Script::Vitest);
        check("node --test", &Script::Node(vec![]));
        let kept = vec!["--import".to_owned(), "tsx".to_owned(), "tests/".to_owned()];
        let quoted = vec!["test/**/*.test.js".to_owned(), "a b".to_owned()];
        check("node --test 'test/**/*.test.js' \"a b\"", &Script::Node(quoted));
        check("node a.test.js", &Script::Node(vec!["a.test.js".to_owned()]));
        check("node --import tsx --test --test-reporter spec tests/", &Script::Node(kept));
    }

    #[test]
    fn a_script_cannot_choose_how_node_reports_and_isolates() {
        let script =
            "node --test --test-reporter=./a.js --test-isolation=none --test-isolation none t";
        check(script, &Script::Node(vec!["t".to_owned()]));
    }

    #[test]
    fn what_a_shell_would_interpret_is_run_as_it_is() {
        for script in
            ["jest && echo done", "tsc; jest", "mocha", "node a.js b", "node", "jest > /dev/null"]
        {
            check(script, &Script::Other);
        }
        check("jest --config other.js", &Script::Other);
        check("node --test 'a", &Script::Other);
        check("node --test a'b c'", &Script::Other);
        check("node --test 'a'b", &Script::Other);
        check("NODE_OPTIONS=--require=./a.js jest", &Script::Other);
    }

    #[test]
    fn the_script_of_npm_init_is_none() {
        check("echo \"Error: no test specified\" && exit 1", &Script::Absent);
        check(" ", &Script::Absent);
    }
}
