//! The kernel's confinement where a container stands around it: what the engine does not give.
//!
//! In a container that shares the machine's processes, a process of the same user could be entered through its directory
//! in `/proc`. Landlock forbids whoever is under it every look into processes outside: their memory, files and roots, and
//! signals to them; and abstract sockets. It forbids no mount here, because sandboxes are made elsewhere.

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use std::io;

use crate::native::init::{Broken, Step as _};

use super::layout::Layout;
use super::{L1Error, L1Options, check, explained, give_up};

/// Confines this process, which an engine started in a container, for good. It has one thread, and nothing open but what
/// it names. `neighbour` is a process of the same user outside, on which it is tried.
pub fn enter_container(options: &L1Options, neighbour: u32) -> Result<(), L1Error> {
    check::alone(&options.keep)?;
    let layout = Layout::of(options)?;
    let failed = |broken| explained(broken, &options.program);
    rustix::thread::set_no_new_privs(true).step("giving up new privileges").map_err(failed)?;
    keep_to_ourselves().map_err(failed)?;
    give_up().map_err(failed)?;
    check::is_contained(&layout, neighbour)
}

fn keep_to_ourselves() -> Result<(), Broken> {
    const STEP: &str = "keeping the kernel from other processes with Landlock";
    let make = || -> Result<_, Box<dyn std::error::Error + Send + Sync>> {
        // It has to forbid something. That files may be moved has to be said, or Landlock forbids that too.
        let handled = AccessFs::MakeBlock | AccessFs::Refer;
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(handled)?
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::from_all(ABI::V6))?
            .create()?
            .add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::Refer))?;
        Ok(rules.restrict_self()?.ruleset)
    };
    let status = make().map_err(io::Error::other).step(STEP)?;
    if status == RulesetStatus::NotEnforced {
        let error = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
        return Err(Broken { step: STEP.into(), error });
    }
    Ok(())
}
