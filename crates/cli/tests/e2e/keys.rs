//! `fluffy auth`: keys are kept, listed and forgotten, and never seen.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::program::{Answer, User};

const KEY: &str = "sk-ant-0123456789abcdefWXYZ";

fn key_file(user: &User, provider: &str) -> PathBuf {
    user.project.state().join(format!("fluffy/keys/providers/{provider}.key"))
}

fn listed(answer: &Answer, provider: &str) -> String {
    answer.out.lines().find(|line| line.starts_with(provider)).unwrap().to_owned()
}

#[test]
fn plg_4_a_piped_key_is_kept_listed_by_its_end_and_forgotten() {
    let user = User::new();
    let set = user.run_with(&["auth", "set", "anthropic"], format!("  {KEY}\r\n").as_bytes());
    assert_eq!(set.code, 0, "{}", set.err);
    let file = key_file(&user, "anthropic");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{KEY}\n"));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let list = user.run(&["auth", "list"]);
    let line = listed(&list, "anthropic");
    assert!(line.contains("***WXYZ from the file"), "{line}");
    assert!(listed(&list, "openai ").contains("none"), "{}", list.out);
    assert!(listed(&list, "ollama").contains("needs no key"), "{}", list.out);
    let json = user.run(&["auth", "list", "--json"]);
    let states: Vec<Value> = json.json_lines();
    assert_eq!((&states[0]["provider"], &states[0]["key"]), (&"anthropic".into(), &"set".into()));
    let rm = user.run(&["auth", "rm", "anthropic"]);
    assert!(!file.exists() && rm.out.contains("is removed from the file"), "{}", rm.out);
    assert!(user.run(&["auth", "rm", "anthropic"]).out.contains("No key for anthropic was kept"));
    for answer in [&set, &list, &json, &rm] {
        assert!(!format!("{}{}", answer.out, answer.err).contains("0123456789"), "{}", answer.out);
    }
}

#[test]
fn the_environment_goes_before_what_is_kept_and_that_is_said() {
    let user = User::new();
    let mut command = user.command(&["auth", "set", "gemini"]);
    command.env("GOOGLE_API_KEY", "AIza-0123456789-from-google");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(KEY.as_bytes()).unwrap();
    let set = Answer::of(child.wait_with_output().unwrap());
    assert!(set.err.contains("`GOOGLE_API_KEY` is set, too"), "{}", set.err);
    let list = |variables: &[(&str, &str)]| {
        let mut command = user.command(&["auth", "list"]);
        command.envs(variables.iter().copied());
        listed(&Answer::of(command.stdin(Stdio::null()).output().unwrap()), "gemini")
    };
    assert!(list(&[]).contains("***WXYZ from the file"));
    assert!(
        list(&[("GOOGLE_API_KEY", "AIza-0123456789-goog")])
            .contains("***goog from the variable `GOOGLE_API_KEY`")
    );
    let both =
        [("GOOGLE_API_KEY", "AIza-0123456789-goog"), ("GEMINI_API_KEY", "AIza-0123456789-gemi")];
    assert!(list(&both).contains("***gemi from the variable `GEMINI_API_KEY`"));
    assert!(list(&[("GEMINI_API_KEY", " ")]).contains("***WXYZ from the file"));
}

#[test]
fn what_is_no_key_is_refused_and_not_repeated() {
    let user = User::new();
    let long = "x".repeat(10_000);
    for (input, what) in [
        ("", "the key is empty"),
        (" \n", "the key is empty"),
        ("sk-47 11", "the key has a character that no key has"),
        ("sk-4711\u{7}", "the key has a character that no key has"),
        ("sk-4711\nsk-4712\n", "the key has a character that no key has"),
        (long.as_str(), "the key has more than 8192 bytes"),
    ] {
        let answer = user.run_with(&["auth", "set", "openai"], input.as_bytes());
        assert_eq!(answer.code, 2);
        assert!(answer.err.contains(what), "{input:?}: {}", answer.err);
        assert!(!answer.err.contains("4711"), "{}", answer.err);
        assert!(!key_file(&user, "openai").exists());
    }
    // No argument is a key: other users could read it.
    let typed = user.run(&["auth", "set", "openai", KEY]);
    assert_eq!(typed.code, 2);
    let unknown = user.run(&["auth", "set", "../../evil"]);
    assert!(unknown.code == 2 && unknown.err.contains("there is no provider"), "{}", unknown.err);
    let local = user.run_with(&["auth", "set", "ollama"], KEY.as_bytes());
    assert!(local.err.contains("no key is kept for `ollama`"), "{}", local.err);
}

#[test]
fn a_file_that_others_can_read_is_refused_with_what_to_do() {
    let user = User::new();
    user.run_with(&["auth", "set", "anthropic"], KEY.as_bytes());
    let file = key_file(&user, "anthropic");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let list = user.run(&["auth", "list"]);
    assert!(listed(&list, "anthropic").contains("open to others"), "{}", list.out);
    let run = user.run(&["run", "--provider", "anthropic", "-m", "m", "a task"]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("chmod 600"), "{}", run.err);
}

#[test]
fn a_key_typed_at_a_terminal_is_not_shown_there() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let user = User::new();
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let mut options = std::fs::OpenOptions::new();
    let terminal = options.read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = user.command(&["auth", "set", "anthropic"]);
    command
        .stdin(terminal.try_clone().unwrap())
        .stdout(terminal.try_clone().unwrap())
        .stderr(terminal);
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut person = std::fs::File::from(person);
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(b"shown): ") {
        person.read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
    person.write_all(format!("typo\u{15}{KEY}x\u{7f}\r").as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    // The end of a terminal is an error to who reads it.
    let _end = person.read_to_end(&mut seen);
    let seen = String::from_utf8_lossy(&seen);
    assert!(
        seen.contains("is kept in") && !seen.contains("sk-ant") && !seen.contains("typo"),
        "{seen}"
    );
    assert_eq!(std::fs::read_to_string(key_file(&user, "anthropic")).unwrap(), format!("{KEY}\n"));
}

#[test]
fn a_task_without_a_provider_says_how_to_get_one() {
    let user = User::new();
    let answer = user.run(&["run", "a task"]);
    assert_eq!(answer.code, 2);
    for part in ["no provider was named", "fluffy auth set", "models --local", "fluffy demo"] {
        assert!(answer.err.contains(part), "{part}: {}", answer.err);
    }
    let answer = user.run(&["run", "--provider", "anthropic", "a task"]);
    assert!(answer.code == 2 && answer.err.contains("fluffy models anthropic"), "{}", answer.err);
    let answer = user.run(&["run", "--provider", "anthropic", "-m", "claude", "a task"]);
    assert!(
        answer.code == 2 && answer.err.contains("`ANTHROPIC_API_KEY` is not set"),
        "{}",
        answer.err
    );
}

#[test]
fn a_project_cannot_say_where_keys_are_sent() {
    let user = User::new();
    user.write(
        ".fluffy/config.yaml",
        "providers:\n  anthropic:\n    url: https://evil.example.org\n    headers: {x: y}\n",
    );
    user.run_with(&["auth", "set", "anthropic"], KEY.as_bytes());
    // The project's file is no settings of providers.
    let list = user.run(&["auth", "list"]);
    assert!(listed(&list, "anthropic").contains("https://api.anthropic.com"), "{}", list.out);
    let run = user.run(&["run", "--provider", "anthropic", "-m", "claude", "a task"]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("never by a project"), "{}", run.err);
}

#[test]
fn settings_inside_of_a_project_cannot_be_touched_by_a_request() {
    let user = User::new();
    // A person whose home is the project.
    let explain = |path: &str| {
        let mut command = user.command(&["policy", "explain", "fs.write", path, "--json"]);
        command.env("HOME", user.project.root());
        let answer = Answer::of(command.stdin(Stdio::null()).output().unwrap());
        answer.json_lines()[0]["decision"].clone()
    };
    user.write(".config/fluffy/config.yaml", "");
    assert_eq!(explain(".config/fluffy/config.yaml"), "deny");
    assert_eq!(explain("src/other.rs"), "allow");
}

/// A session bus of its own with gnome's keyring on it.
struct Desktop {
    dir: tempfile::TempDir,
    children: Vec<Child>,
}

impl Desktop {
    /// A bus alone.
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("fluffy-bus-").tempdir().unwrap();
        let mut desktop = Self { dir, children: Vec::new() };
        let mut bus = desktop.command("dbus-daemon");
        // Without services that would be started when somebody asks for them.
        let config = desktop.dir.path().join("bus.conf");
        let text = format!(
            "<busconfig><type>session</type><listen>{}</listen><auth>EXTERNAL</auth><policy context=\"default\">\
             <allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/><allow own=\"*\"/>\
             </policy></busconfig>",
            desktop.address()
        );
        std::fs::write(&config, text).unwrap();
        bus.arg(format!("--config-file={}", config.display()));
        bus.args(["--nofork", "--nopidfile", "--print-address"]).stdout(Stdio::piped());
        let mut bus =
            bus.spawn().unwrap_or_else(|error| panic!("dbus-daemon: {error}; run scripts/test"));
        // It is there as soon as it says where.
        let mut byte = [0];
        bus.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        desktop.children.push(bus);
        desktop
    }

    /// The same with a keyring that is open.
    fn with_keyring() -> Self {
        let mut desktop = Self::new();
        let mut keyring = desktop.command("gnome-keyring-daemon");
        keyring.args(["--foreground", "--unlock", "--components=secrets"]);
        let keyring = keyring.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut keyring = keyring
            .unwrap_or_else(|error| panic!("gnome-keyring-daemon: {error}; run scripts/test"));
        keyring.stdin.take().unwrap().write_all(b"password").unwrap();
        desktop.children.push(keyring);
        while !desktop.has("org.freedesktop.secrets") {
            let keyring = desktop.children.last_mut().unwrap();
            assert!(keyring.try_wait().unwrap().is_none(), "the keyring ended");
        }
        desktop
    }

    fn address(&self) -> String {
        format!("unix:path={}", self.dir.path().join("bus").display())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("XDG_RUNTIME_DIR", self.dir.path())
            .env("DBUS_SESSION_BUS_ADDRESS", self.address())
            .stderr(Stdio::null());
        command
    }

    fn has(&self, name: &str) -> bool {
        let mut ask = self.command("dbus-send");
        ask.args([
            "--session",
            "--print-reply",
            "--dest=org.freedesktop.DBus",
            "/org/freedesktop/DBus",
        ]);
        ask.args(["org.freedesktop.DBus.NameHasOwner", &format!("string:{name}")]);
        String::from_utf8_lossy(&ask.output().unwrap().stdout).contains("true")
    }

    /// Locks every collection.
    fn lock(&self) {
        let mut ask = self.command("dbus-send");
        ask.args([
            "--session",
            "--print-reply",
            "--dest=org.freedesktop.secrets",
            "/org/freedesktop/secrets",
        ]);
        ask.args([
            "org.freedesktop.Secret.Service.Lock",
            "array:objpath:/org/freedesktop/secrets/collection/login",
        ]);
        assert!(ask.output().unwrap().status.success());
    }

    fn fluffy(&self, user: &User, args: &[&str], input: &str) -> Answer {
        let mut command = user.command(args);
        command.env("DBUS_SESSION_BUS_ADDRESS", self.address());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Answer::of(child.wait_with_output().unwrap())
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ended = child.kill().and_then(|()| child.wait());
        }
    }
}

#[test]
fn plg_4_a_key_lies_in_the_keyring_where_there_is_one() {
    let (user, desktop) = (User::new(), Desktop::with_keyring());
    // What was kept in a file before moves.
    user.run_with(&["auth", "set", "anthropic"], b"sk-old-one");
    for key in ["sk-first", KEY] {
        let set = desktop.fluffy(&user, &["auth", "set", "anthropic"], key);
        assert!(set.out.contains("is kept in the keyring"), "{}{}", set.out, set.err);
        assert!(!key_file(&user, "anthropic").exists());
    }
    let list = desktop.fluffy(&user, &["auth", "list"], "");
    assert!(listed(&list, "anthropic").contains("***WXYZ from the keyring"), "{}", list.out);
    assert!(listed(&list, "openai ").contains("none"), "{}", list.out);
    // Another program finds it, too, and one item only.
    let mut lookup = desktop.command("dbus-send");
    lookup.args([
        "--session",
        "--print-reply",
        "--dest=org.freedesktop.secrets",
        "/org/freedesktop/secrets",
    ]);
    lookup.args([
        "org.freedesktop.Secret.Service.SearchItems",
        "dict:string:string:application,fluffy",
    ]);
    let found = String::from_utf8(lookup.output().unwrap().stdout).unwrap();
    assert_eq!(found.matches("object path").count(), 1, "{found}");
    let rm = desktop.fluffy(&user, &["auth", "rm", "anthropic"], "");
    assert!(rm.out.contains("is removed from the keyring"), "{}", rm.out);
    let list = desktop.fluffy(&user, &["auth", "list"], "");
    assert!(listed(&list, "anthropic").contains("none"), "{}", list.out);
}

#[test]
fn plg_4_a_locked_keyring_is_said_and_the_key_is_kept_in_a_file() {
    let (user, desktop) = (User::new(), Desktop::with_keyring());
    let set = desktop.fluffy(&user, &["auth", "set", "anthropic"], KEY);
    assert!(set.out.contains("in the keyring"), "{}{}", set.out, set.err);
    desktop.lock();
    let list = desktop.fluffy(&user, &["auth", "list"], "");
    assert!(listed(&list, "anthropic").contains("the keyring is locked"), "{}", list.out);
    let set = desktop.fluffy(&user, &["auth", "set", "anthropic"], "sk-0123456789abcdef-file");
    assert!(set.err.contains("the keyring is locked, so the key is kept in a file"), "{}", set.err);
    let list = desktop.fluffy(&user, &["auth", "list"], "");
    assert!(listed(&list, "anthropic").contains("***file from the file"), "{}", list.out);
}

#[test]
fn plg_4_a_bus_without_a_keyring_or_that_is_none_is_no_hindrance() {
    let (user, desktop) = (User::new(), Desktop::new());
    let set = desktop.fluffy(&user, &["auth", "set", "anthropic"], KEY);
    assert!(
        set.out.contains("is kept in the file") && set.err.is_empty(),
        "{}{}",
        set.out,
        set.err
    );
    // Something else behind the address: it says something that is no greeting.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bus");
    let listener = UnixListener::bind(&path).unwrap();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"ERROR nobody\r\n").unwrap();
        let _end = stream.read_to_end(&mut Vec::new());
    });
    let mut command = user.command(&["auth", "set", "openai"]);
    command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", path.display()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(KEY.as_bytes()).unwrap();
    let set = Answer::of(child.wait_with_output().unwrap());
    assert!(
        set.err.contains("does not answer") && set.out.contains("in the file"),
        "{}{}",
        set.out,
        set.err
    );
    peer.join().unwrap();
}
