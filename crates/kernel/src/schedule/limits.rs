//! How many may work at a time, and when memory is short.

use fluffy_sandbox::Template;

/// What the scheduler keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many work at a time, whatever they are.
    pub global: usize,
    /// Of the sandboxes that speak to models.
    pub ai_provider: usize,
    /// Of those that run commands and tests.
    pub code_executor: usize,
    /// Of those that evaluate rule files.
    pub policy_sandbox: usize,
    /// Of those that run with listed hosts.
    pub integration_test: usize,
    /// So long a task waits for each level by which it rises.
    pub age_ms: u64,
    /// From here on nothing new starts.
    pub memory_held: Share,
    /// From here on what is not critical is ended.
    pub memory_spent: Share,
    /// So long memory may be spent before what waits for it is given up.
    pub patience_ms: u64,
}

/// A part of a whole, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Share(pub u8);

impl Share {
    /// So much of so much; nothing of nothing.
    pub fn of(part: u64, whole: u64) -> Self {
        let hundredths = u128::from(part) * 100 / u128::from(whole.max(1));
        Self(u8::try_from(hundredths.min(100)).unwrap_or(100))
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} %", self.0)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            global: 4,
            ai_provider: 2,
            code_executor: 2,
            policy_sandbox: 1,
            integration_test: 2,
            age_ms: 30_000,
            memory_held: Share(80),
            memory_spent: Share(90),
            patience_ms: 30_000,
        }
    }
}

impl Limits {
    /// How many of one kind work at a time. Nobody can set it so that none ever does.
    pub fn of(&self, template: Template) -> usize {
        let said = match template {
            Template::AiProvider => self.ai_provider,
            Template::CodeExecutor => self.code_executor,
            Template::PolicySandbox => self.policy_sandbox,
            Template::IntegrationTest => self.integration_test,
        };
        said.max(1)
    }

    /// How many work at a time in all.
    pub fn in_all(&self) -> usize {
        self.global.max(1)
    }
}

/// The place of a kind among all.
pub(super) const fn place(template: Template) -> usize {
    match template {
        Template::AiProvider => 0,
        Template::CodeExecutor => 1,
        Template::PolicySandbox => 2,
        Template::IntegrationTest => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sch_3_the_limits_are_four_in_all_two_providers_two_executors_and_one_policy_sandbox() {
        let limits = Limits::default();
        assert_eq!(limits.in_all(), 4);
        let each = Template::ALL.map(|template| limits.of(template));
        assert_eq!(each, [2, 2, 1, 2]);
        let none = Limits { global: 0, code_executor: 0, ..limits };
        assert_eq!((none.in_all(), none.of(Template::CodeExecutor)), (1, 1));
    }

    #[test]
    fn a_share_is_in_hundredths_and_never_more_than_the_whole() {
        assert_eq!(Share::of(4, 5), Share(80));
        assert_eq!(Share::of(799, 1000), Share(79));
        assert_eq!(Share::of(7, 5), Share(100));
        assert_eq!(Share::of(0, 0), Share(0));
        assert_eq!(Share::of(u64::MAX, u64::MAX), Share(100));
    }
}
