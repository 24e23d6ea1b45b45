//! Words of a line that are paths, hosts or names of secrets.

/// Such a word, as it stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A path.
    Path(&'a str),
    /// A host, perhaps with its port.
    Host(&'a str),
    /// The name of a secret.
    Secret(&'a str),
}

/// Endings of names of hosts that are no endings of names in Python.
const ENDINGS: [&str; 34] = [
    "com",
    "org",
    "net",
    "io",
    "dev",
    "ai",
    "app",
    "co",
    "info",
    "xyz",
    "edu",
    "gov",
    "mil",
    "biz",
    "example",
    "local",
    "internal",
    "localhost",
    "test",
    "onion",
    "uk",
    "de",
    "fr",
    "ru",
    "cn",
    "eu",
    "us",
    "ch",
    "at",
    "nl",
    "me",
    "sh",
    "cloud",
    "site",
];

/// Endings of names of files.
const FILES: [&str; 20] = [
    "py", "pyc", "pyi", "toml", "yaml", "yml", "json", "ini", "cfg", "conf", "env", "pem", "key",
    "sh", "db", "sqlite", "txt", "md", "so", "lock",
];

/// Parts of names of secrets.
const SECRET: [&str; 9] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "CREDENTIALS", "AUTH", "COOKIE"];

/// The words of a line that name something.
pub(crate) fn tokens(line: &str) -> impl Iterator<Item = Token<'_>> {
    let between = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                '`' | '"'
                    | '\''
                    | '('
                    | ')'
                    | '<'
                    | '>'
                    | ','
                    | ';'
                    | '{'
                    | '}'
                    | '|'
                    | '*'
                    | '='
                    | '’'
                    | '“'
                    | '”'
            )
    };
    line.split(between).filter_map(token)
}

fn token(word: &str) -> Option<Token<'_>> {
    let word = word.trim_end_matches(['.', ':', '!', '?']);
    if let Some((_, rest)) = word.split_once("://") {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        return Some(Token::Host(host));
    }
    let is_name = word.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    let bare = word.trim_start_matches('$');
    if bare != word && bare.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return Some(Token::Secret(bare));
    }
    if is_name && word.split('_').any(|part| SECRET.contains(&part)) {
        return Some(Token::Secret(word));
    }
    if is_host(word) {
        return Some(Token::Host(word));
    }
    is_path(word).then_some(Token::Path(word))
}

fn is_host(word: &str) -> bool {
    let word = word.strip_prefix("//").unwrap_or(word);
    let word = word.split('/').next().unwrap_or_default();
    let (name, port) = match word.rsplit_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (word, None),
    };
    let is_port = port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    let bare = word.trim_start_matches('[').split(']').next().unwrap_or_default();
    let is_address = name.parse::<std::net::Ipv4Addr>().is_ok()
        || bare.parse::<std::net::Ipv6Addr>().is_ok_and(|_| bare.contains("::") || bare.len() > 8);
    // `test_x.py:12` is a line of a file, and `x:3` in a slice is no host.
    let has_port = is_port && name.contains('.') && labels_fit(name) && !is_file(name);
    is_address
        || has_port
        || word.split(':').any(is_domain)
        || name.eq_ignore_ascii_case("localhost")
}

fn is_domain(name: &str) -> bool {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) && labels_fit(name)
}

fn labels_fit(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    name.split('.').all(|label| !label.is_empty() && label.bytes().all(fits))
}

fn is_path(word: &str) -> bool {
    let word = word.split_once(".py:").map_or(word, |(before, _)| before.trim_end_matches('/'));
    if word.len() < 2 || word.starts_with("//") {
        return false;
    }
    let begins = ["/", "~/", "./", "../", ".fluffy", ".git", ".env", ".ssh", ".aws"];
    let begins = begins.iter().any(|begin| word.starts_with(begin)) || word == "~";
    let parts: Vec<&str> = word.split('/').collect();
    let leads_up = parts.contains(&"..");
    begins
        || leads_up
        || parts.len() > 1 && (parts.len() > 2 || parts.iter().any(|it| is_file(it)))
        || parts.len() == 1 && is_file(word) && !word.starts_with('.')
}

fn is_file(word: &str) -> bool {
    word.rsplit_once('.').is_some_and(|(name, end)| !name.is_empty() && FILES.contains(&end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &[Token<'_>]) {
        assert_eq!(tokens(line).collect::<Vec<_>>(), expected, "{line}");
    }

    #[test]
    fn paths_hosts_and_secrets_are_found_and_words_are_not() {
        check(
            "call https://me@api.example.org:8443/x?y now",
            &[Token::Host("api.example.org:8443")],
        );
        check("use api.example.org.", &[Token::Host("api.example.org")]);
        check(
            "169.254.169.254 and [::1]:80, ::1",
            &[Token::Host("169.254.169.254"), Token::Host("[::1]:80"), Token::Host("::1")],
        );
        check("localhost:8000", &[Token::Host("localhost:8000")]);
        check(
            "read `/etc/passwd` and ~/.ssh/id_rsa",
            &[Token::Path("/etc/passwd"), Token::Path("~/.ssh/id_rsa")],
        );
        check("notes/../../x", &[Token::Path("notes/../../x")]);
        check("edit policy.yaml", &[Token::Path("policy.yaml")]);
        check("with $HOME and API_KEY", &[Token::Secret("HOME"), Token::Secret("API_KEY")]);
        for line in [
            "return a dict and/or a list, e.g. one",
            "use pathlib.Path, json.dumps and self.folder",
            "MAX_RESULTS is 10 and 1/2 is half",
            "items[1:3] and x: int",
            "-> dict[str, object]",
            "the input/output schema",
        ] {
            check(line, &[]);
        }
    }

    proptest! {
        #[test]
        fn no_line_breaks_it(line in "(\\PC|[a-z.:/@$_]){0,80}") {
            for token in tokens(&line) {
                let (Token::Path(text) | Token::Host(text) | Token::Secret(text)) = token;
                prop_assert!(line.contains(text));
            }
        }
    }
}
