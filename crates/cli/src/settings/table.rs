//! Every setting there is: the one place from which parsing, commands, messages and the reference page come.
//!
//! **Invariant.** A project's file is foreign input. It has no word for where keys go and for what would outlive or
//! weaken the user's own rules; where it has one, [`Meeting`] says what the user's own word still holds.

use crate::settings::value::Kind;

/// Where a setting can be said, the strongest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Layer {
    /// Nobody said anything.
    Default,
    /// `$XDG_CONFIG_HOME/fluffy/config.yaml`.
    User,
    /// `.fluffy/config.yaml`, which came with the project.
    Project,
    /// A variable `FLUFFY_…`.
    Environment,
    /// An argument.
    Argument,
}

/// How what a project says meets what the user's own file says. Arguments and environment are the user's, too, and
/// go before both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// A project has no word for it, for this reason.
    Never(&'static str),
    /// The project's word goes before the user's.
    Replaces,
    /// The stricter of both holds; where the user says nothing, the project's.
    NotLooserThanUser,
    /// The stricter of both holds; where the user says nothing, the default stands for it.
    NotLooserThanDefault,
}

/// One setting.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Its name; `*` stands for a name that the user gives.
    pub(crate) name: &'static str,
    /// What may be said.
    pub(crate) kind: Kind,
    /// What holds where nobody says anything, as it would be typed.
    pub(crate) default: Option<&'static str>,
    /// The argument that says it.
    pub(crate) argument: Option<&'static str>,
    /// Whether `FLUFFY_…` says it.
    pub(crate) environment: bool,
    /// Whether the user's own file says it.
    pub(crate) user: bool,
    /// Whether a project says it.
    pub(crate) project: Meeting,
    /// Whether it bears on what is allowed, kept or sent: then the kernel's rules judge what comes of it, whoever said it.
    pub(crate) security: bool,
    /// What it is for, in one line.
    pub(crate) about: &'static str,
}

/// Why a project does not choose who is sent the user's code and key.
const WHO_GETS_THE_KEY: &str = "it decides who is sent your key and your code";
/// Why a project does not choose how long evidence is kept.
const EVIDENCE: &str =
    "it would have the record of its own doings thrown away, or your disk filled";

/// A setting that the user's own file says, and nobody else.
const fn own(name: &'static str, kind: Kind, about: &'static str) -> Setting {
    Setting {
        name,
        kind,
        default: None,
        argument: None,
        environment: false,
        user: true,
        project: Meeting::Never(WHO_GETS_THE_KEY),
        security: true,
        about,
    }
}

/// A setting about how much of the machine sandboxes take.
const fn scheduled(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    about: &'static str,
) -> Setting {
    Setting {
        default: Some(default),
        environment: true,
        project: Meeting::Never("it decides how much of your machine is used"),
        security: false,
        ..own(name, kind, about)
    }
}

/// A setting about how much one job may use: the user's is the most, a project may ask for less.
const fn limited(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    about: &'static str,
) -> Setting {
    Setting {
        default: Some(default),
        environment: true,
        project: Meeting::NotLooserThanDefault,
        ..own(name, kind, about)
    }
}

/// Seconds of one job, up to a day.
const TIME: Kind = Kind::Count { from: 1, to: 86_400 };
/// Mebibytes of one job.
const MEMORY: Kind = Kind::Count { from: 16, to: 1_048_576 };
/// Processors of one job.
const PROCESSORS: Kind = Kind::Count { from: 1, to: 1_024 };
/// Processes of one job.
const PROCESSES: Kind = Kind::Count { from: 4, to: 32_768 };
/// How many sandboxes work at a time.
const SEATS: Kind = Kind::Count { from: 1, to: 1_000 };
/// A part of the memory.
const HUNDREDTHS: Kind = Kind::Count { from: 1, to: 100 };

/// All of them, in the order in which they are shown.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        argument: Some("--provider"),
        environment: true,
        ..own("provider", Kind::Provider, "who provides the model where nothing else is said")
    },
    Setting {
        argument: Some("--model"),
        environment: true,
        ..own("model", Kind::Text, "which model, at that provider")
    },
    Setting {
        default: Some("strict"),
        argument: Some("--mode"),
        environment: true,
        project: Meeting::NotLooserThanUser,
        ..own(
            "mode",
            Kind::OneOf(&["strict", "explore", "debug"]),
            "how strictly a new task works; what a project loosens, `--yes` does not agree to",
        )
    },
    Setting {
        default: Some("50"),
        argument: Some("--max-turns"),
        environment: true,
        project: Meeting::NotLooserThanDefault,
        ..own("max_turns", COUNT, "turns of the model after which a task is stopped")
    },
    Setting {
        argument: Some("--max-tokens"),
        environment: true,
        project: Meeting::NotLooserThanDefault,
        ..own("max_tokens", COUNT, "tokens, sent and received, after which a task is stopped")
    },
    Setting {
        argument: Some("--max-cost"),
        environment: true,
        project: Meeting::NotLooserThanDefault,
        ..own("max_cost", Kind::Dollars, "cost in US dollars after which a task is stopped")
    },
    Setting {
        environment: true,
        user: false,
        project: Meeting::Replaces,
        ..own(
            "test.command",
            Kind::Command,
            "the command that runs the tests, in their sandbox, where the project's files do not tell; JUnit files that it leaves, TAP, or its exit code count",
        )
    },
    Setting {
        environment: true,
        user: false,
        project: Meeting::Replaces,
        security: false,
        ..own("test.coverage", Kind::ProjectFile, "where that command leaves its coverage")
    },
    Setting {
        environment: true,
        user: false,
        project: Meeting::Replaces,
        ..own("test.files", Kind::Globs, "tests beside what languages have as their custom")
    },
    Setting {
        environment: true,
        default: Some("run"),
        project: Meeting::NotLooserThanDefault,
        ..own(
            "commit.hooks",
            Kind::OneOf(&["refuse", "run", "skip"]),
            "what becomes of the repository's hooks, which are yours and not the project's; `refuse` does not commit where there are some",
        )
    },
    Setting {
        environment: true,
        project: Meeting::Replaces,
        security: false,
        ..own("commit.author", Kind::Author, "whom commits are by, if not by whoever git says")
    },
    Setting {
        default: Some("600"),
        environment: true,
        project: Meeting::Never("it decides what stays running on your machine"),
        security: false,
        ..own(
            "kernel.idle_seconds",
            Kind::Count { from: 0, to: 604_800 },
            "how long a kernel without clients stays",
        )
    },
    Setting {
        default: Some("native"),
        environment: true,
        project: Meeting::Never("it decides what separates the kernel from your machine"),
        ..own(
            "kernel.confinement",
            Kind::OneOf(&["native", "container"]),
            "what the kernel of a task is confined in; a container is made by the engine that `sandbox.runtime` names",
        )
    },
    Setting {
        default: Some("90"),
        environment: true,
        project: Meeting::Never(EVIDENCE),
        ..own(
            "ledger.retention_days",
            Kind::Count { from: 1, to: 36_500 },
            "how many days of the ledger are kept",
        )
    },
    Setting {
        default: Some("1024"),
        environment: true,
        project: Meeting::Never(EVIDENCE),
        ..own(
            "ledger.max_size_mib",
            Kind::Count { from: 16, to: 1_048_576 },
            "how much of the disk a ledger and its archives take",
        )
    },
    Setting {
        default: Some("native"),
        environment: true,
        project: Meeting::Never("it decides what separates foreign code from your machine"),
        ..own(
            "sandbox.runtime",
            Kind::OneOf(&["native", "docker", "podman"]),
            "what makes the sandboxes",
        )
    },
    Setting {
        environment: true,
        project: Meeting::Replaces,
        ..own(
            "sandbox.image",
            Kind::Text,
            "the image whose programs jobs see, where an engine makes the sandboxes; without one, the machine's own. One that a project names is not fetched",
        )
    },
    scheduled("scheduler.global_max", "4", SEATS, "how many sandboxes work at a time"),
    scheduled("scheduler.per_template.ai_provider", "2", SEATS, "of those that speak to models"),
    scheduled(
        "scheduler.per_template.code_executor",
        "2",
        SEATS,
        "of those that run commands, tests and skills",
    ),
    scheduled(
        "scheduler.per_template.policy_sandbox",
        "1",
        SEATS,
        "of those that evaluate rule files",
    ),
    scheduled(
        "scheduler.per_template.integration_test",
        "2",
        SEATS,
        "of those that run with listed hosts",
    ),
    scheduled(
        "scheduler.age_seconds",
        "30",
        Kind::Count { from: 1, to: 86_400 },
        "how long a task waits for each level by which it rises",
    ),
    scheduled(
        "scheduler.memory_held",
        "80",
        HUNDREDTHS,
        "hundredths of the memory from which on no new task starts beside another",
    ),
    scheduled(
        "scheduler.memory_spent",
        "90",
        HUNDREDTHS,
        "hundredths of the memory from which on tests, commands and skills are ended",
    ),
    limited(
        "limits.test.time_seconds",
        "300",
        TIME,
        "how long one suite of tests may run, in seconds",
    ),
    limited("limits.test.memory_mib", "1024", MEMORY, "the memory of a run of tests"),
    limited("limits.test.processors", "1", PROCESSORS, "the processors of a run of tests"),
    limited("limits.test.processes", "100", PROCESSES, "processes and threads of a run of tests"),
    limited("limits.command.time_seconds", "300", TIME, "how long a command may run, in seconds"),
    limited("limits.command.memory_mib", "1024", MEMORY, "the memory of a command"),
    limited("limits.command.processors", "1", PROCESSORS, "the processors of a command"),
    limited("limits.command.processes", "100", PROCESSES, "processes and threads of a command"),
    Setting {
        default: Some("http://localhost:8000/v1"),
        environment: true,
        ..own(
            "forge.gateway.url",
            Kind::Address,
            "the local server of OpenAI's protocol that advises on skills, that skills may ask, and that talks in a chat where you name it; it is sent no key",
        )
    },
    Setting {
        default: Some("claude"),
        environment: true,
        ..own(
            "forge.builder",
            Kind::OneOf(&["command", "claude", "codex", "agent"]),
            "who writes skills where nothing else is said; `agent` is your provider's model, `command` the program below",
        )
    },
    Setting {
        environment: true,
        ..own(
            "forge.builder_command",
            Kind::Command,
            "a program that writes skills: it gets the packet on its standard input, in a copy of the project",
        )
    },
    Setting {
        environment: true,
        ..own(
            "forge.builder_hosts",
            Kind::Names,
            "hosts that this program may reach; none without it",
        )
    },
    Setting {
        environment: true,
        ..own(
            "forge.builder_keys",
            Kind::Names,
            "variables of yours that this program is given; none without it",
        )
    },
    Setting {
        default: Some("600000"),
        environment: true,
        argument: Some("--timeout"),
        ..own(
            "forge.build_timeout_ms",
            Kind::Count { from: 1, to: 3_600_000 },
            "how long a build of a skill may take, in milliseconds",
        )
    },
    Setting {
        default: Some("gpt-oss-20b"),
        environment: true,
        ..own("forge.gateway.model", Kind::Text, "which model, at that server")
    },
    Setting {
        default: Some("30000"),
        environment: true,
        ..own(
            "forge.gateway.timeout_ms",
            Kind::Count { from: 1, to: 600_000 },
            "how long an answer of that server may take, in milliseconds",
        )
    },
    own(
        "proxy",
        Kind::Proxy,
        "the proxy on the way to providers; without it, `HTTPS_PROXY` counts",
    ),
    own(
        "no_proxy",
        Kind::Names,
        "hosts that are reached without it; `NO_PROXY` counts with `HTTPS_PROXY`",
    ),
    own(
        "providers.*.protocol",
        Kind::Provided(
            "`openai-responses`, `openai-chat`, `openai-compatible`, `anthropic` or `gemini`",
        ),
        "what is spoken there",
    ),
    own("providers.*.url", Kind::Provided("an address"), "where the provider is asked"),
    own("providers.*.model", Kind::Provided("a text"), "which model, where none is named"),
    own(
        "providers.*.key",
        Kind::Provided("`stored`, `env:NAME` or `none`"),
        "where the key comes from; never the key itself",
    ),
    own(
        "providers.*.headers.*",
        Kind::Header,
        "a header of every request, or `env:NAME` for what a variable holds",
    ),
    own(
        "providers.*.certificates",
        Kind::Provided("a file"),
        "certificates that are trusted beside the usual ones, from the directory of the settings",
    ),
    own(
        "providers.*.version",
        Kind::Provided("a word"),
        "the version that the protocol wants named",
    ),
    own(
        "providers.*.effort",
        Kind::Provided("`none`, `low`, `medium` or `high`"),
        "how long the model thinks",
    ),
    own(
        "providers.*.context_window",
        Kind::Provided("a number above 0"),
        "tokens that the model sees",
    ),
    own("providers.*.max_output_tokens", Kind::Provided("a number above 0"), "the longest answer"),
    own("providers.*.prices.input", PRICE, "what a million tokens cost that are sent"),
    own("providers.*.prices.output", PRICE, "what a million tokens cost that are received"),
    own("providers.*.prices.cached", PRICE, "what a million tokens cost that a cache had"),
    own("providers.*.prices.cache_written", PRICE, "what a million tokens cost that a cache takes"),
    own("providers.*.timeouts.connect", SPAN, "how long a connection may take"),
    own("providers.*.timeouts.first_byte", SPAN, "how long the first byte of an answer may take"),
    own("providers.*.timeouts.idle", SPAN, "how long an answer may pause"),
];

const COUNT: Kind = Kind::Count { from: 1, to: u64::MAX };
const PRICE: Kind = Kind::Provided("dollars");
const SPAN: Kind = Kind::Provided("a time such as `30s`");

impl Layer {
    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Project => "project",
            Self::Environment => "environment",
            Self::Argument => "argument",
        }
    }
}

impl Setting {
    /// The setting that a full name is one of, with the parts of that name.
    pub(crate) fn named(name: &str) -> Option<(&'static Self, Vec<String>)> {
        SETTINGS.iter().find_map(|setting| Some((setting, setting.parts(name)?)))
    }

    /// The parts of a full name, if it is one of this setting. A name that the user gave may have dots in it.
    fn parts(&self, name: &str) -> Option<Vec<String>> {
        let pattern: Vec<&str> = self.name.split('.').collect();
        matched(&pattern, name)
    }

    /// The variable that says it, if one does.
    pub(crate) fn variable(&self) -> Option<String> {
        let name = self.name.to_ascii_uppercase().replace('.', "_");
        self.environment.then(|| format!("FLUFFY_{name}"))
    }

    /// Whether this layer has a word for it.
    pub(crate) fn is_said_by(&self, layer: Layer) -> bool {
        match layer {
            Layer::Default => self.default.is_some(),
            Layer::User => self.user,
            Layer::Project => !matches!(self.project, Meeting::Never(_)),
            Layer::Environment => self.environment,
            Layer::Argument => self.argument.is_some(),
        }
    }

    /// Whether it stands somewhere below this section.
    pub(crate) fn is_below(&self, section: &[String]) -> bool {
        let own: Vec<&str> = self.name.split('.').collect();
        own.len() > section.len()
            && own.iter().zip(section).all(|(own, part)| *own == "*" || own == part)
    }

    /// Whether these parts are a name of this setting.
    pub(crate) fn is_at(&self, parts: &[String]) -> bool {
        let own = self.name.split('.');
        own.clone().count() == parts.len()
            && own.zip(parts).all(|(own, part)| own == "*" || own == part)
    }

    /// One part of its name, the first being 0.
    pub(crate) fn part(&self, at: usize) -> Option<&'static str> {
        self.name.split('.').nth(at)
    }
}

/// The parts of a name that follows a pattern; the shortest that do.
fn matched(pattern: &[&str], name: &str) -> Option<Vec<String>> {
    let (first, rest) = pattern.split_first()?;
    let fits = |part: &str| !part.is_empty() && (*first == "*" || *first == part);
    if rest.is_empty() {
        return fits(name).then(|| vec![name.to_owned()]);
    }
    name.match_indices('.').find_map(|(at, _)| {
        let (head, tail) = (name.get(..at)?, name.get(at + 1..)?);
        let more = matched(rest, tail).filter(|_| fits(head))?;
        Some(std::iter::once(head.to_owned()).chain(more).collect())
    })
}
