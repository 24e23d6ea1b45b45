//! The manifests of a project, from which its tests are found.

use std::collections::BTreeMap;

use fluffy_base::ProjectPath;
use fluffy_workflow::is_manifest;

use super::{TreeError, View};

/// A larger one was not written by a person.
const MAX_BYTES: u64 = 1024 * 1024;

/// Together. The outermost come first, since they say most about the project.
const MAX_TOTAL: usize = 16 * 1024 * 1024;

impl View {
    /// The files that git does not ignore, with the texts of the manifests among them.
    pub fn manifests(
        &self,
    ) -> Result<(Vec<ProjectPath>, BTreeMap<ProjectPath, String>), TreeError> {
        let files = self.walk(None)?.files;
        let texts = self.texts_of_manifests(&files);
        Ok((files, texts))
    }

    fn texts_of_manifests(&self, files: &[ProjectPath]) -> BTreeMap<ProjectPath, String> {
        let mut manifests: Vec<_> = files.iter().filter(|file| is_manifest(file)).collect();
        manifests.sort_by_key(|file| file.components().count());
        let mut texts = BTreeMap::new();
        let mut total = 0;
        for file in manifests {
            // One that cannot be read is to the tests as if it were not there.
            let Ok(bytes) = self.read(file, MAX_BYTES) else { continue };
            let Ok(text) = String::from_utf8(bytes) else { continue };
            total += text.len();
            if total > MAX_TOTAL {
                break;
            }
            texts.insert(file.clone(), text);
        }
        texts
    }
}
