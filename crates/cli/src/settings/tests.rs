//! Who says what, who is heard, and what is refused.

use std::path::PathBuf;

use super::*;

/// A user with a project, and what each layer says.
struct World {
    dir: tempfile::TempDir,
    environment: Environment,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["config/fluffy", "project/.fluffy", "state"] {
            std::fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        let config_home = Some(dir.path().join("config"));
        Self { dir, environment: Environment { config_home, ..Environment::default() } }
    }

    fn path(&self, layer: Layer) -> PathBuf {
        let name = match layer {
            Layer::Project => "project/.fluffy/config.yaml",
            _ => "config/fluffy/config.yaml",
        };
        self.dir.path().join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "a test writes the files of settings")]
    fn write(&self, layer: Layer, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(layer), text).unwrap();
    }

    /// Has a layer say something.
    fn say(&mut self, layer: Layer, setting: &Setting, text: &str) {
        match layer {
            Layer::User | Layer::Project => {
                let parts: Vec<String> = concrete(setting).split('.').map(str::to_owned).collect();
                let text = edit::set("", &parts, text).unwrap();
                self.write(layer, text);
            }
            Layer::Environment => {
                self.environment.settings = vec![(setting.variable().unwrap(), text.into())];
            }
            Layer::Default | Layer::Argument => {}
        }
    }

    fn load(&self) -> Result<Settings, CliError> {
        let root = self.dir.path();
        Settings::load(&Place::at(root.join("project"), root.join("state")), &self.environment)
    }

    #[track_caller]
    fn refused(&self) -> crate::explain::Explained {
        let explained = self.load().err().unwrap().explained();
        assert_eq!(explained.code, 2, "{explained:?}");
        explained
    }
}

/// A full name of a setting.
fn concrete(setting: &Setting) -> String {
    setting.name.replacen('*', "work", 1).replacen('*', "x-team", 1)
}

/// Three values of a kind as they are written, from the strictest.
fn samples(setting: &Setting) -> [String; 3] {
    let words: [&str; 3] = match setting.kind {
        Kind::Text => ["small", "middle", "big"],
        Kind::Count { .. } => ["20", "30", "40"],
        Kind::Dollars => ["0.5", "1", "2.25"],
        Kind::OneOf(words) => match words {
            [a, b, c] => [*a, *b, *c],
            _ => [words[0]; 3],
        },
        Kind::Address => ["\"https://a\"", "\"https://b/v1\"", "\"http://localhost:1\""],
        Kind::Provider => ["ollama", "openai", "work"],
        Kind::Proxy => ["\"http://a:1\"", "\"http://b:2\"", "\"http://c:3\""],
        Kind::Names | Kind::Command | Kind::Globs => ["[a]", "[b, c]", "[d]"],
        Kind::ProjectFile => ["a.info", "b/c.info", "d.xml"],
        Kind::Author => ["\"A <a@b.c>\"", "\"B <b@b.c>\"", "\"C <c@b.c>\""],
        Kind::Header => ["a", "b", "c"],
        Kind::Provided(_) => match setting.name.rsplit('.').next().unwrap() {
            "protocol" => ["anthropic", "gemini", "openai-chat"],
            "url" => ["\"https://a\"", "\"https://b\"", "\"https://c\""],
            "key" => ["none", "stored", "\"env:KEY\""],
            "effort" => ["low", "medium", "high"],
            "connect" | "first_byte" | "idle" => ["1s", "2s", "3s"],
            "context_window" | "max_output_tokens" => ["1", "2", "3"],
            _ => ["a", "b", "c"],
        },
    };
    words.map(str::to_owned)
}

fn unquoted(text: &str) -> &str {
    text.trim_matches('"')
}

/// What holds, and who says so.
fn heard(settings: &Settings, setting: &Setting) -> (String, Layer) {
    let found = settings.effective(&concrete(setting)).unwrap();
    (found.value.to_string(), found.origin.layer())
}

/// What is shown of a sample.
fn shown(setting: &Setting, sample: &str) -> String {
    setting.kind.of_typed(unquoted(sample)).unwrap().to_string()
}

/// Settings that can stand alone; the parts of a list of prices cannot.
fn alone() -> impl Iterator<Item = &'static Setting> {
    SETTINGS.iter().filter(|setting| !setting.name.contains(".prices."))
}

#[test]
fn the_table_makes_sense() {
    let mut names = std::collections::BTreeSet::new();
    let mut variables = std::collections::BTreeSet::new();
    for setting in SETTINGS {
        assert!(names.insert(setting.name), "{} stands twice", setting.name);
        assert!(setting.variable().is_none_or(|name| variables.insert(name)), "{}", setting.name);
        assert!(!setting.about.is_empty() && !setting.about.contains('\n'), "{}", setting.name);
        if let Some(default) = setting.default {
            assert!(setting.kind.of_text(default).is_ok(), "{}", setting.name);
        }
        if matches!(setting.project, Meeting::NotLooserThanUser | Meeting::NotLooserThanDefault) {
            let [strict, _, loose] = samples(setting);
            let value = |text: &str| setting.kind.of_text(text).unwrap();
            let (strict, loose) = (value(&strict), value(&loose));
            assert!(setting.kind.is_stricter(&strict, &loose), "{}", setting.name);
            assert!(!setting.kind.is_stricter(&loose, &strict), "{}", setting.name);
        }
        let (named, parts) = Setting::named(&concrete(setting)).unwrap();
        assert_eq!((named.name, parts.join(".")), (setting.name, concrete(setting)));
    }
    let (_, parts) = Setting::named("providers.open.router.url").unwrap();
    assert_eq!(parts, ["providers", "open.router", "url"]);
    assert!(Setting::named("providers..url").is_none());
    assert!(Setting::named("").is_none());
}

#[test]
fn cli_4_each_layer_goes_before_the_ones_below_for_every_setting() {
    let order = [Layer::User, Layer::Project, Layer::Environment, Layer::Argument];
    for setting in alone() {
        let mut world = World::new();
        // Each stronger layer says something stricter, so that it is heard whatever the rule.
        let [strict, middle, loose] = samples(setting);
        let words = [loose, middle, strict.clone(), strict];
        for (layer, word) in order.into_iter().zip(words) {
            if !setting.is_said_by(layer) {
                continue;
            }
            world.say(
                layer,
                setting,
                if layer == Layer::Environment { unquoted(&word) } else { &word },
            );
            if setting.name == "test.coverage" && layer == Layer::Project {
                world.write(layer, format!("test:\n  command: [x]\n  coverage: {word}\n"));
            }
            let typed = (layer == Layer::Argument).then_some(unquoted(&word));
            let settings = world.load().unwrap().typed(&concrete(setting), typed).unwrap();
            let expected = (shown(setting, &word), layer);
            assert_eq!(heard(&settings, setting), expected, "{}", setting.name);
        }
    }
}

#[test]
fn cli_4_the_origin_of_a_value_names_file_and_line_variable_or_argument() {
    let mut world = World::new();
    world.write(Layer::User, "# mine\n\nmax_turns: 20\n");
    world.write(Layer::Project, "commit:\n  # ours\n  author: A <a@b.c>\n");
    world.environment.settings = vec![("FLUFFY_MODE".to_owned(), "explore".into())];
    let settings = world.load().unwrap().typed("max_tokens", Some("7")).unwrap();
    let origin = |name: &str| settings.effective(name).unwrap().origin.to_string();
    let user = world.path(Layer::User).display().to_string();
    assert_eq!(origin("max_turns"), format!("user {user}:3"));
    assert_eq!(origin("commit.author"), "project .fluffy/config.yaml:3");
    assert_eq!(origin("mode"), "environment FLUFFY_MODE");
    assert_eq!(origin("max_tokens"), "argument --max-tokens");
    assert_eq!(origin("commit.hooks"), "default");
}

#[test]
fn cli_4_a_project_cannot_say_what_is_not_its_to_say() {
    let mut refused = 0;
    for setting in SETTINGS.iter().filter(|setting| !setting.is_said_by(Layer::Project)) {
        let mut world = World::new();
        let [_, _, word] = samples(setting);
        world.say(Layer::Project, setting, &word);
        let error = world.refused();
        // Of a group that a project has another word for, its own word is pointed at.
        let places = ["line 1, column 1", "line 2, column 3"];
        let named = places.iter().any(|place| error.why.contains(place));
        let said = error.why.contains("never by a project");
        assert!(named && said, "{}: {}", setting.name, error.why);
        assert!(!error.why.contains(unquoted(&word)) || word.len() < 8, "{}", error.why);
        refused += 1;
    }
    assert!(refused > 15, "{refused}");
    // Not even by an empty word for it, nor written in one line.
    for text in ["providers: {}\n", "providers: {anthropic: {}}\n", "{proxy: ~}\n", "ledger:\n"] {
        let world = World::new();
        world.write(Layer::Project, text);
        assert!(world.refused().why.contains("never by a project"), "{text}");
    }
}

#[test]
fn cli_4_a_project_may_lower_a_cap_and_never_raise_it_nor_pass_hooks_over() {
    let caps: Vec<_> = SETTINGS
        .iter()
        .filter(|setting| setting.project == Meeting::NotLooserThanDefault)
        .collect();
    assert_eq!(caps.len(), 12, "turns, tokens, cost, hooks and eight limits of jobs");
    for setting in caps {
        let [strict, middle, loose] = samples(setting);
        for (project, user, layer) in
            [(&loose, &middle, Layer::User), (&strict, &middle, Layer::Project)]
        {
            let mut world = World::new();
            world.say(Layer::Project, setting, project);
            world.say(Layer::User, setting, user);
            assert_eq!(heard(&world.load().unwrap(), setting).1, layer, "{}", setting.name);
        }
        // The user's own words of the moment go before both.
        let mut world = World::new();
        world.say(Layer::Project, setting, &strict);
        world.say(Layer::Environment, setting, &loose);
        assert_eq!(heard(&world.load().unwrap(), setting).1, Layer::Environment);
    }
    let world = World::new();
    world.write(Layer::Project, "max_turns: 100000\n");
    assert_eq!(world.load().unwrap().number("max_turns"), Some(50));
    world.write(Layer::User, "max_turns: 200\n");
    assert_eq!(world.load().unwrap().number("max_turns"), Some(200));
    world.write(Layer::Project, "commit: {hooks: skip}\n");
    let settings = world.load().unwrap();
    assert_eq!(settings.hooks(), HookPolicy::Run);
    let overruled = settings.overruled("commit.hooks").unwrap();
    assert_eq!(overruled.value.to_string(), "skip");
    assert!(settings.overruled("max_turns").is_none());
    world.write(Layer::User, "commit: {hooks: skip}\n");
    assert_eq!(world.load().unwrap().hooks(), HookPolicy::Skip);
    world.write(Layer::Project, "max_cost: 1000\n");
    assert_eq!(world.load().unwrap().number("max_cost"), Some(1_000_000_000));
}

#[test]
fn cli_4_a_project_cannot_loosen_what_the_user_says_of_modes_and_hooks() {
    for name in ["mode", "commit.hooks"] {
        let (setting, _) = Setting::named(name).unwrap();
        let [strict, middle, loose] = samples(setting);
        for (project, user, layer) in [
            (&loose, &strict, Layer::User),
            (&loose, &middle, Layer::User),
            (&strict, &loose, Layer::Project),
        ] {
            let mut world = World::new();
            world.say(Layer::Project, setting, project);
            world.say(Layer::User, setting, user);
            assert_eq!(heard(&world.load().unwrap(), setting).1, layer, "{name}");
        }
    }
}

#[test]
fn cli_4_yes_does_not_agree_to_a_mode_that_a_project_loosens() {
    let world = World::new();
    for mode in ["explore", "debug"] {
        world.write(Layer::Project, format!("mode: {mode}\n"));
        let settings = world.load().unwrap();
        assert_eq!(settings.mode(false).unwrap().name(), mode);
        let error = settings.mode(true).unwrap_err().explained();
        assert_eq!(error.code, 3);
        assert!(error.fix.contains("--mode strict"), "{}", error.fix);
        // Whoever says it themselves is believed.
        let typed = settings.typed("mode", Some(mode)).unwrap();
        assert_eq!(typed.mode(true).unwrap().name(), mode);
    }
    world.write(Layer::Project, "mode: strict\n");
    assert_eq!(world.load().unwrap().mode(true).unwrap(), Mode::Strict);
}

#[test]
fn cli_4_a_model_of_a_weaker_layer_is_not_asked_of_a_stronger_layers_provider() {
    let mut world = World::new();
    world.write(Layer::User, "provider: anthropic\nmodel: claude\n");
    let model = |world: &World| world.load().unwrap().model().map(|(name, _)| name.to_owned());
    assert_eq!(model(&world).as_deref(), Some("claude"));
    world.environment.settings = vec![("FLUFFY_PROVIDER".to_owned(), "openai".into())];
    assert_eq!(model(&world), None);
    world.environment.settings.push(("FLUFFY_MODEL".to_owned(), "gpt".into()));
    assert_eq!(model(&world).as_deref(), Some("gpt"));
}

#[track_caller]
fn check_file(layer: Layer, text: &[u8], parts: &[&str]) {
    let world = World::new();
    world.write(layer, text);
    let error = world.refused();
    for part in parts {
        assert!(error.why.contains(part), "{part}: {}", error.why);
    }
    assert!(error.what.ends_with("config.yaml` cannot be used"), "{}", error.what);
    assert!(error.why.len() < 1000, "{}", error.why.len());
}

#[test]
fn lesson_l17_a_wrong_file_is_told_with_line_column_and_what_was_meant() {
    for layer in [Layer::User, Layer::Project] {
        let check = |text: &str, parts: &[&str]| check_file(layer, text.as_bytes(), parts);
        check("max_trun: 3\n", &["line 1, column 1", "`max_trun`", "did you mean `max_turns`?"]);
        check(
            "mode: strict\ncommit:\n  hoks: run\n",
            &["line 3, column 3", "did you mean `hooks`?"],
        );
        check("colour: red\n", &["unknown key `colour`", "expected `"]);
        check("commit.hooks: run\n", &["write it as `commit: {hooks: …}`"]);
        check("max_turns: many\n", &["line 1, column 12", "`many` is not a number from 1"]);
        check("max_turns: 0\n", &["`0` is not"]);
        check("max_turns: -1\n", &["`-1` is not"]);
        check("max_turns: 1.5\n", &["`1.5` is not"]);
        check("max_turns: 99999999999999999999999\n", &["line 1"]);
        check("max_turns: [3]\n", &["line 1, column 12", "is not a number"]);
        check("max_turns: {a: 3}\n", &["is not a number"]);
        check("max_cost: 0\n", &["above 0"]);
        check("max_cost: .nan\n", &["line 1, column 11"]);
        check("max_cost: 1e3x\n", &["above 0"]);
        check("mode: Strict\n", &["`Strict` is not `strict`, `explore` or `debug`"]);
        check("mode: true\n", &["`true` is not"]);
        check("commit: run\n", &["`commit` must be a mapping"]);
        check("commit: [hooks]\n", &["`commit` must be a mapping"]);
        check("- a\n", &["the file must be a mapping"]);
        check("just words\n", &["the file must be a mapping"]);
        check("1: 2\n", &["the file must be a mapping"]);
        check("mode: strict\nmode: strict\n", &["line 2", "stands twice"]);
        check("commit: {author: Ada}\n", &["Name <address>"]);
        check("a: &a [x]\nb: [*a, *a]\n", &["anchors"]);
        check("<<: {mode: strict}\n", &["merge keys"]);
        check("mode: strict\n---\nmode: debug\n", &["one document"]);
        check("mode: \"strict\n", &["line"]);
        check("mode: !!python/object:os.system x\n", &["line 1"]);
        check(&"{a: ".repeat(5000), &["line 1"]);
        check(&format!("{}: x\n", "k".repeat(1000)), &["unknown key"]);
        check_file(layer, b"mode: \xff\n", &["not UTF-8"]);
        check_file(layer, &vec![b'#'; 10 << 20], &["more than"]);
    }
    let check = |text: &str, part: &str| check_file(Layer::Project, text.as_bytes(), &[part]);
    check("test:\n  comand: [x]\n", "did you mean `command`?");
    check("test: {command: []}\n", "names no program");
    check("test: {command: make}\n", "a list of words");
    check("test: {files: [\"!a\"]}\n", "test.files");
    check("test: {coverage: a.info}\n", "there is no command");
    check("test: {command: [x], coverage: ../a.info}\n", "test.coverage");
    check_file(Layer::User, b"test:\n  command: [x]\n", &["line 1", "is said by a project"]);
}

#[test]
fn cli_4_a_bomb_of_yaml_is_refused_before_it_goes_off() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let below = format!("*a{}", level - 1);
        bomb += &format!("a{level}: &a{level} [{}]\n", [&*below; 9].join(", "));
    }
    for layer in [Layer::User, Layer::Project] {
        check_file(layer, bomb.as_bytes(), &["anchors"]);
    }
}

#[test]
fn cli_4_files_that_say_nothing_and_files_of_other_systems_are_read() {
    let world = World::new();
    for text in ["", "\n", "# nothing\n", "---\n", "commit:\n", "commit:\n  hooks:\n", "\u{feff}"] {
        world.write(Layer::User, text);
        world.write(Layer::Project, text);
        let settings = world.load().map_err(|error| error.explained());
        assert_eq!(settings.unwrap().hooks(), HookPolicy::Run, "{text:?}");
    }
    world.write(
        Layer::Project,
        "commit:\r\n  hooks: refuse # why\r\n  author: Ada <ada@example.org>\r\n",
    );
    let settings = world.load().unwrap();
    assert_eq!(settings.hooks(), HookPolicy::Refuse);
    assert_eq!(settings.author().unwrap().email(), "ada@example.org");
    let found = settings.effective("commit.author").unwrap();
    assert!(found.origin.to_string().ends_with(":3"), "{}", found.origin);
}

#[test]
fn cli_4_what_is_no_file_of_ones_own_is_not_read() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let world = World::new();
    let (project, user) = (world.path(Layer::Project), world.path(Layer::User));
    // A directory, and a pipe that nobody ever writes to.
    std::fs::create_dir(&project).unwrap();
    assert!(world.refused().why.contains("no file"));
    std::fs::remove_dir(&project).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    for path in [&project, &user] {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(world.refused().why.contains("no file"));
        rustix::fs::unlink(path).unwrap();
    }
    // A link of the project's, be it the file or its folder: the model could write what is behind it.
    let elsewhere = world.dir.path().join("project/settings.yaml");
    world.write(Layer::User, "mode: explore\n");
    symlink(&user, &elsewhere).unwrap();
    symlink("../settings.yaml", &project).unwrap();
    let linked = |world: &World| world.load().err().unwrap().explained().what;
    assert!(linked(&world).contains("is a symbolic link"), "{}", linked(&world));
    rustix::fs::unlink(&project).unwrap();
    std::fs::remove_dir(project.parent().unwrap()).unwrap();
    symlink(user.parent().unwrap(), project.parent().unwrap()).unwrap();
    assert!(linked(&world).contains("is a symbolic link"), "{}", linked(&world));
    rustix::fs::unlink(project.parent().unwrap()).unwrap();
    // The user's own may be a link, as those who keep their files elsewhere have it; not one that others write.
    let real = world.dir.path().join("mine.yaml");
    std::fs::copy(&user, &real).unwrap();
    rustix::fs::unlink(&user).unwrap();
    symlink(&real, &user).unwrap();
    assert_eq!(world.load().unwrap().text("mode"), Some("explore"));
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o646)).unwrap();
    assert!(world.refused().why.contains("everybody may write it"));
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o000)).unwrap();
    if !rustix::process::geteuid().is_root() {
        assert!(world.refused().why.contains("cannot be read"));
    }
}

#[test]
fn cli_4_nonsense_in_the_environment_is_told_and_what_is_not_ours_is_left_alone() {
    use std::os::unix::ffi::OsStringExt as _;
    let mut world = World::new();
    let bytes = std::ffi::OsString::from_vec(vec![0xff]);
    for (name, text, part) in [
        ("FLUFFY_MAX_TURNS", "many".into(), "is not a number"),
        ("FLUFFY_MAX_TURNS", " ".into(), "is not a number"),
        ("FLUFFY_MAX_TURNS", bytes, "UTF-8"),
        ("FLUFFY_MAX_COST", "-1".into(), "above 0"),
        ("FLUFFY_MODE", "yolo".into(), "`yolo` is not"),
        ("FLUFFY_SANDBOX_RUNTIME", "none".into(), "is not `native`"),
        ("FLUFFY_MAX_COTS", "1".into(), "did you mean `FLUFFY_MAX_COST`?"),
        ("FLUFFY_PROVIDER", "../x".into(), "is not the name of a provider"),
        ("FLUFFY_MODEL", "\u{1b}]0;x\u{7}".into(), "is not one line"),
        ("FLUFFY_COMMIT_AUTHOR", "Ada".into(), "Name <address>"),
        ("FLUFFY_KERNEL_IDLE_SECONDS", "-5".into(), "from 0 to 604800"),
    ] {
        world.environment.settings = vec![(name.to_owned(), text)];
        let error = world.refused();
        assert!(error.why.contains(part), "{name}: {}", error.why);
        assert!(error.what.contains(name) && !error.why.contains('\u{1b}'), "{}", error.what);
    }
    let strange =
        ["FLUFFY_SANDBOX", "FLUFFY_PROXY", "FLUFFY_ENDURANCE_PLACE", "FLUFFY_", "FLUFFY_X"];
    world.environment.settings = strange.map(|name| (name.to_owned(), "/run/x".into())).to_vec();
    world.environment.settings.push(("FLUFFY_MAX_TURNS".to_owned(), "".into()));
    assert_eq!(world.load().unwrap().number("max_turns"), Some(50));
}

#[test]
fn lesson_l21_no_setting_has_a_word_for_rules_mounts_users_or_sandboxes() {
    for text in [
        "policy: x\n",
        "rules: []\n",
        "built_in: false\n",
        "sandbox: {mounts: [/]}\n",
        "sandbox: {user: root}\n",
        "sandbox: {runtime: none}\n",
        "jurisdiction: {}\n",
        "review: never\n",
        "yes: true\n",
    ] {
        for layer in [Layer::User, Layer::Project] {
            let world = World::new();
            world.write(layer, text);
            world.refused();
        }
    }
}

#[test]
fn cli_4_nothing_that_a_file_says_acts_on_a_terminal() {
    let escape = "\\e]0;x\\a\\u202e";
    for text in [
        format!("\"{escape}\": 1\n"),
        format!("mode: \"{escape}\"\n"),
        format!("max_turns: \"{escape}\"\n"),
        format!("commit: {{author: \"{escape}\"}}\n"),
        format!("commit: {{\"{escape}\": x}}\n"),
        format!("test: {{command: [x], coverage: \"/{escape}\"}}\n"),
        format!("test: {{command: [x], coverage: \"../{escape}\"}}\n"),
        format!("test: {{files: [\"!{escape}\"]}}\n"),
        format!("test: {{command: \"{escape}\"}}\n"),
        format!("\"{escape}\": 1\n\"{escape}\": 1\n"),
    ] {
        let world = World::new();
        world.write(Layer::Project, &text);
        let told = world.refused().why;
        assert_eq!(crate::inert::inert(&told), told, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn cli_4_no_text_makes_the_reading_of_settings_panic(
        text in "(mode|test|commit|hooks|providers|a|prices|headers|[0-9]|-|\"|'|[|]|\\{|\\}|: |:|#|&a|\\*a|!!|%|\u{feff}|é|\t|\n|\r\n|  ){0,40}",
    ) {
        for layer in [Layer::User, Layer::Project] {
            let _whatever = file::read("config.yaml", layer, &text);
        }
        let _whatever = entries("config.yaml", &text);
    }
}
