//! What kinds of things the ledger remembers, and which of them must be on disk before they count.

use std::fmt;

macro_rules! events {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $category:ident;)*) => {
        /// What happened.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventType { $($(#[$doc])* $variant,)* }

        impl EventType {
            /// Every kind of event.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name that stands in the ledger.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The group it belongs to.
            pub const fn category(self) -> Category {
                match self { $(Self::$variant => Category::$category,)* }
            }
        }
    };
}

events! {
    /// A request that was answered with one entry: a refusal, a read, an intent without a tool.
    Syscall = "syscall", Operation;
    /// An allowed request whose effect is about to start.
    ToolExecute = "tool_execute", Operation;
    /// What became of a started effect.
    ToolResult = "tool_result", Operation;
    /// A step of the workflow.
    StateTransition = "state_transition", Operation;
    /// The policy was replaced.
    PolicyUpdate = "policy_update", Security;
    /// The session's mode was changed.
    SessionModeChange = "session_mode_change", Security;
    /// A program of a command line is about to be started.
    CommandProgram = "command_program", Operation;
    /// A sandbox was made.
    SandboxCreated = "sandbox_created", Sandbox;
    /// A sandbox was taken away.
    SandboxDestroyed = "sandbox_destroyed", Sandbox;
    /// A sandbox could not be made or broke.
    SandboxFailed = "sandbox_failed", Sandbox;
    /// A sandbox asked for something of the network.
    NetworkRequest = "network_request", Sandbox;
    /// A capability token was issued.
    CapabilityIssued = "capability_issued", Security;
    /// A capability token ended.
    CapabilityExpired = "capability_expired", Operation;
    /// A merge into the project was approved.
    MergeApproved = "merge_approved", Security;
    /// A merge into the project was rejected.
    MergeRejected = "merge_rejected", Security;
    /// A person answered a review.
    HumanDecision = "human_decision", Security;
    /// A turn of the model.
    AiTurn = "ai_turn", Operation;
    /// A kernel booted.
    KernelStart = "kernel_start", Lifecycle;
    /// A kernel ended in order.
    KernelShutdown = "kernel_shutdown", Lifecycle;
    /// A kernel was halted.
    KernelHalt = "kernel_halt", Security;
    /// The signing key was replaced.
    KeyRotation = "key_rotation", Security;
    /// Something happened to a skill.
    Skill = "skill", Security;
    /// Which plugins are installed, after a change.
    Plugin = "plugin", Security;
    /// A plugin was rejected, loaded, active or unloaded.
    PluginLifecycle = "plugin_lifecycle", Lifecycle;
    /// Packages were installed for a session.
    DependencyInstalled = "dependency_installed", Security;
    /// Somebody was answered in words: talk, which changes nothing.
    Talk = "talk", Operation;
    /// The ledger's storage fills up.
    AuditStorageWarning = "audit_storage_warning", Storage;
    /// The ledger's storage is nearly full.
    AuditStorageCritical = "audit_storage_critical", Storage;
    /// The entries of completed days were written to an archive.
    AuditArchived = "audit_archived", Storage;
    /// Archived entries leave the database.
    AuditTrimmed = "audit_trimmed", Storage;
    /// An archive of the ledger is deleted.
    AuditArchiveDeleted = "audit_archive_deleted", Storage;
    /// The ledger was found damaged; this entry starts a new segment.
    AuditChainBreak = "audit_chain_break", Security;
}

/// A group of events, for queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// Decides what may happen later; always on disk before its effect.
    Security,
    /// Day-to-day requests and results.
    Operation,
    /// Sandboxes coming and going, and what they ask of the network.
    Sandbox,
    /// Kernels starting and ending.
    Lifecycle,
    /// The ledger's own storage.
    Storage,
}

impl EventType {
    /// The event with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.name() == name)
    }
}

impl Category {
    /// Every category.
    pub const ALL: [Self; 5] =
        [Self::Security, Self::Operation, Self::Sandbox, Self::Lifecycle, Self::Storage];

    /// The name used in queries.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Security => "security",
            Self::Operation => "operation",
            Self::Sandbox => "sandbox",
            Self::Lifecycle => "lifecycle",
            Self::Storage => "storage",
        }
    }

    /// The category with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_of_the_requirements_is_known_by_name() {
        let names = "syscall tool_execute tool_result state_transition policy_update \
            session_mode_change sandbox_created sandbox_destroyed sandbox_failed capability_issued \
            capability_expired merge_approved merge_rejected kernel_start kernel_shutdown \
            audit_storage_warning audit_archive_deleted audit_chain_break audit_storage_critical \
            ai_turn network_request";
        for name in names.split_whitespace() {
            assert_eq!(EventType::from_name(name).map(EventType::name), Some(name));
        }
        assert_eq!(EventType::from_name("SYSCALL"), None);
    }

    #[test]
    fn the_events_that_must_be_durable_are_security_events() {
        for name in [
            "policy_update",
            "merge_approved",
            "merge_rejected",
            "session_mode_change",
            "capability_issued",
            "human_decision",
            "kernel_halt",
            "audit_chain_break",
            "skill",
        ] {
            let event = EventType::from_name(name).unwrap();
            assert_eq!(event.category(), Category::Security, "{name}");
        }
    }
}
