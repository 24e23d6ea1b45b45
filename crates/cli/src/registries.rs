//! The user's own settings of package registries, read by the client: the kernel's process sees no home.

use std::path::Path;

use fluffy_base::Secret;
use fluffy_dependencies::{RegistryFile, RegistrySettings};

use crate::environment::Environment;
use crate::explain::CliError;
use crate::providers::Catalogue;
use crate::wire::HandedRegistries;

/// The largest file of settings.
const MAX_BYTES: u64 = 1 << 20;

/// A host that stands for all registries where it is asked which proxy leads to them.
const USUAL_REGISTRY: &str = "registry.npmjs.org";

/// Reads them. A file that cannot be read is as if it were not there: the manager itself would say the same.
pub(crate) fn read(environment: &Environment) -> Result<HandedRegistries, CliError> {
    let files =
        RegistryFile::ALL.into_iter().filter_map(|file| Some((file, found(file, environment)?)));
    let files: Vec<(RegistryFile, String)> = files.collect();
    let referred = files.iter().flat_map(|(_, text)| RegistrySettings::references(text));
    let referred: Vec<String> = referred.collect();
    let wanted = |name: &String| RegistrySettings::is_variable(name) || referred.contains(name);
    let env = environment.variables.iter().filter(|(name, _)| wanted(name));
    Ok(HandedRegistries {
        env: env.map(|(name, text)| (name.clone(), Secret::new(text.clone()))).collect(),
        files: files
            .into_iter()
            .map(|(file, text)| (file.name().to_owned(), Secret::new(text)))
            .collect(),
        proxy: Catalogue::of(environment)?.via(USUAL_REGISTRY),
    })
}

fn found(file: RegistryFile, environment: &Environment) -> Option<String> {
    let home = environment.home.as_deref();
    let in_home = file.in_home().iter().filter_map(|name| Some(home?.join(name)));
    let in_system = file.in_system().map(Path::new).map(Path::to_owned);
    in_home.chain(in_system).find_map(|path| {
        let small =
            std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_BYTES);
        small.then(|| std::fs::read_to_string(&path).ok()).flatten()
    })
}

/// The same as the kernel works with it.
pub(crate) fn settings(handed: HandedRegistries) -> RegistrySettings {
    let named = |name: &str| RegistryFile::ALL.into_iter().find(|file| file.name() == name);
    let files = handed.files.into_iter();
    let files = files.filter_map(|(name, text)| Some((named(&name)?, text)));
    RegistrySettings { files: files.collect(), env: handed.env }
}
