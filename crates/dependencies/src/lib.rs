//! What a project depends on: package managers as data, lock files, and the rules about packages.
//!
//! A [`Manager`] is found from the project's files. A [`InstallRequest`] becomes the scripts that a manager runs in its
//! sandboxes ([`resolve_script`], [`unpack_script`], [`rebuild_script`]); [`read_packages`] reads what it locked; [`judge`] holds
//! that against the policy; [`recognise`] tells that a command line installs packages; [`bill_of_materials`] writes CycloneDX.
//!
//! **Invariant.** Nothing here does input or output. Lock files and reports are a stranger's bytes: what cannot be read is
//! an error, and an error installs nothing.
//!
//! **Invariant.** No word of a request reaches a shell unquoted or can be taken for an option: names and versions are checked
//! against what their registry accepts.

mod judgement;
mod lock;
mod manifest;
mod package;
mod profile;
mod recognise;
mod registry;
mod request;
mod sbom;
mod script;
mod similar;
mod skeleton;
mod time;

pub use judgement::{
    Judgement, PackageChange, judge, named_modules, package_changes, unknown_modules,
};
pub use lock::{LockError, MAX_LOCK_BYTES, PackageFacts, read_facts, read_packages};
pub use manifest::{ManifestError, edit_requirements, foreign_changes, ignore_line};
pub use package::{PackageOrigin, ResolvedPackage};
pub use profile::{Manager, Platform, UnknownManager};
pub use recognise::recognise;
pub use registry::{RegistryFile, RegistrySettings};
pub use request::{InstallRequest, PackageSpec, RequestError};
pub use sbom::bill_of_materials;
pub use script::{
    LOCKED, REPORT, Script, WORK, locked_requirements, rebuild_script, resolve_script,
    unpack_script, version_script,
};
pub use skeleton::{CargoSkeleton, SkeletonError};
