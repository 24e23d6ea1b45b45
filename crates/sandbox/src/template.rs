//! The four kinds of sandbox, and what each is made of.

use std::fmt;
use std::str::FromStr;

use fluffy_base::{ByteSize, Span};

use crate::limits::Limits;
use crate::profile::Profile;

/// A kind of sandbox. What it gives can be narrowed, never widened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Template {
    /// Speaks to a model's servers through the proxy; sees no project.
    AiProvider,
    /// Runs commands and unit tests; no network.
    CodeExecutor,
    /// Evaluates rule files; no network, no project.
    PolicySandbox,
    /// Runs tests that need hosts which the policy lists, through the proxy.
    IntegrationTest,
}

/// Whether a sandbox of this kind may be given a way to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Never.
    None,
    /// To listed hosts, through the proxy.
    Restricted,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Template {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::AiProvider, Self::CodeExecutor, Self::PolicySandbox, Self::IntegrationTest];

    /// The name in configuration and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AiProvider => "ai-provider",
            Self::CodeExecutor => "code-executor",
            Self::PolicySandbox => "policy-sandbox",
            Self::IntegrationTest => "integration-test",
        }
    }

    /// The seccomp profile.
    pub const fn profile(self) -> Profile {
        match self {
            Self::AiProvider | Self::PolicySandbox => Profile::Strict,
            Self::CodeExecutor => Profile::Standard,
            Self::IntegrationTest => Profile::StandardNet,
        }
    }

    /// Whether the proxy may be reached.
    pub const fn reach(self) -> Reach {
        match self {
            Self::AiProvider | Self::IntegrationTest => Reach::Restricted,
            Self::CodeExecutor | Self::PolicySandbox => Reach::None,
        }
    }

    /// Whether the project may be shown in it.
    pub const fn shows_project(self) -> bool {
        match self {
            Self::CodeExecutor | Self::IntegrationTest => true,
            Self::AiProvider | Self::PolicySandbox => false,
        }
    }

    /// How much it may use.
    pub const fn limits(self) -> Limits {
        let guest = Limits {
            memory: ByteSize::from_bytes(128 * MIB),
            cpu: 250,
            processes: 5,
            duration: Some(Span::from_ms(100)),
            captured: ByteSize::from_bytes(MIB),
            disk: ByteSize::from_bytes(16 * MIB),
            files: 1_000,
            open_files: 256,
        };
        let executor = Limits {
            memory: ByteSize::from_bytes(GIB),
            cpu: 1_000,
            processes: 100,
            duration: Some(Span::from_ms(300_000)),
            captured: ByteSize::from_bytes(16 * MIB),
            disk: ByteSize::from_bytes(4 * GIB),
            files: 500_000,
            open_files: 4_096,
        };
        match self {
            Self::PolicySandbox => guest,
            Self::AiProvider => Limits {
                memory: ByteSize::from_bytes(256 * MIB),
                cpu: 500,
                processes: 10,
                duration: Some(Span::from_ms(120_000)),
                captured: ByteSize::from_bytes(16 * MIB),
                ..guest
            },
            Self::CodeExecutor | Self::IntegrationTest => executor,
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no sandbox template `{0}` (there are: ai-provider, code-executor, policy-sandbox, integration-test)"
)]
pub struct UnknownTemplate(String);

impl FromStr for Template {
    type Err = UnknownTemplate;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|template| template.name() == text);
        known.ok_or_else(|| UnknownTemplate(text.to_owned()))
    }
}
