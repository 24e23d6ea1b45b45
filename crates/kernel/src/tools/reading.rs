//! What the reading tools have in common: they remember nothing, and know which of their failures may pass.

use fluffy_base::Json;
use serde_json::Value;

use crate::{Clerk, Failure, Tool, ToolError, ToolSpec};

/// A tool that reads. It has no clerk, so there is nothing that it could leave behind.
pub(super) trait Reading: Send + Sync {
    /// See [`Tool::spec`].
    fn spec(&self) -> ToolSpec;

    /// Reads, with parameters that its schema accepts.
    fn read(&self, params: &Json) -> Result<Value, Failure>;
}

impl<R: Reading> Tool for R {
    fn spec(&self) -> ToolSpec {
        Reading::spec(self)
    }

    fn run(&self, params: &Json, _: &dyn Clerk) -> Result<Value, ToolError> {
        self.read(params).map_err(ToolError::from)
    }

    fn attempt(&self, params: &Json, _: &dyn Clerk) -> Result<Value, Failure> {
        self.read(params)
    }
}
