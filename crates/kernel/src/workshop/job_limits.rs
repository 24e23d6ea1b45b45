//! How much commands and runs of tests may use: what the user's settings say, or else what the template gives.
//!
//! **Invariant.** A call can only ask for less: its own time never lasts longer than the setting.

use fluffy_sandbox::{Limit, Limits, Template, UserLimits};

use super::Workshop;

/// What the user's settings give the jobs of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobLimits {
    /// Commands; what the template gives where nothing is said.
    pub command: Option<UserLimits>,
    /// Runs of tests; the same.
    pub test: Option<UserLimits>,
}

/// A kind of job that has settings of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitedJob {
    Command,
    Test,
}

impl LimitedJob {
    const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Test => "test",
        }
    }
}

impl Workshop {
    /// The same with the limits of the user's settings.
    #[must_use]
    pub fn with_limits(self, limits: JobLimits) -> Self {
        Self { limits, ..self }
    }

    /// What the user's settings give this kind of job, if they say something.
    pub(super) fn user_limits(&self, job: LimitedJob) -> Option<UserLimits> {
        match job {
            LimitedJob::Command => self.limits.command,
            LimitedJob::Test => self.limits.test,
        }
    }

    /// The limits of this kind of job.
    pub(crate) fn job_limits(&self, job: LimitedJob) -> Limits {
        let template = Template::CodeExecutor.limits();
        self.user_limits(job).map_or(template, |user| template.with_user(user))
    }
}

/// What to do about a limit that a job reached: the setting, its value, and one that is likely enough. Nothing for a limit that is no
/// setting. How much would have been enough cannot be known of a job that was ended, so it is the double.
pub(crate) fn setting_hint(job: LimitedJob, limit: Limit, limits: &Limits) -> Option<String> {
    let (name, value) = match limit {
        Limit::Duration => ("time_seconds", limits.duration?.ms().div_ceil(1_000)),
        Limit::Memory => ("memory_mib", limits.memory.bytes() >> 20),
        Limit::Processes => ("processes", u64::from(limits.processes)),
        Limit::Captured | Limit::Disk => return None,
    };
    let (job, double) = (job.name(), value.saturating_mul(2));
    Some(format!(
        "the user's setting `limits.{job}.{name}` is {value}; {double} is likely enough \
         (`fluffy config set limits.{job}.{name} {double}`)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_names_setting_value_and_double() {
        let limits = Template::CodeExecutor.limits();
        let hint = |job, limit| setting_hint(job, limit, &limits);
        let memory = hint(LimitedJob::Test, Limit::Memory).unwrap();
        assert!(memory.contains("`limits.test.memory_mib` is 1024; 2048 is"), "{memory}");
        let time = hint(LimitedJob::Command, Limit::Duration).unwrap();
        assert!(time.contains("`limits.command.time_seconds` is 300; 600 is"), "{time}");
        let processes = hint(LimitedJob::Command, Limit::Processes).unwrap();
        assert!(processes.contains("`limits.command.processes` is 100; 200 is"), "{processes}");
        assert_eq!(hint(LimitedJob::Command, Limit::Disk), None);
    }
}
