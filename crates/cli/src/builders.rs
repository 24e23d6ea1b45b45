//! Where the programs of builders are on this machine. They are looked for where the person is: the kernel behind its walls
//! sees no home, and of what lies there only what it is shown.

use std::path::PathBuf;

use fluffy_forge::build::ProgramBuilder;
use fluffy_sandbox::Shown;

use crate::environment::Environment;
use crate::settings::Settings;

/// The directories in which programs are looked for.
pub(crate) fn search_path(environment: &Environment) -> Vec<PathBuf> {
    environment.path.iter().flat_map(std::env::split_paths).filter(|it| it.is_absolute()).collect()
}

/// What has to be seen of this machine for the builders to run that are installed.
pub(crate) fn shown(environment: &Environment) -> Vec<PathBuf> {
    // Settings that cannot be read are told by whoever needs them.
    let settings = Settings::of_person(environment).ok();
    let argv = settings.as_ref().and_then(|settings| settings.list("forge.builder_command"));
    let command = argv.and_then(|argv| ProgramBuilder::command(argv).ok());
    let builders = [ProgramBuilder::claude(), ProgramBuilder::codex()].into_iter().chain(command);
    let path = search_path(environment);
    let mut shown: Vec<_> = builders
        .filter_map(|builder| builder.locate(&path).ok()?.1)
        .filter(|path| Shown::new(path).is_ok())
        .collect();
    shown.sort_unstable();
    shown.dedup();
    shown
}
