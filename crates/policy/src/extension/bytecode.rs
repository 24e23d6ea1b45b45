//! Compiled modules: the one place that hands bytes to the engine as code.
//!
//! A rule is compiled once, in an engine that has a compiler, and run in engines that have none: there
//! `eval`, `Function` and its relatives cannot work, whatever a rule does to reach them.
//!
//! **Invariant.** A [`Bytecode`] holds what this process's engine compiled, unchanged, and lives as
//! long as the process.

use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Ctx, Module};

/// A compiled module.
#[derive(Clone, Copy)]
pub(super) struct Bytecode(&'static [u8]);

impl Bytecode {
    /// Compiles a module without running it.
    pub(super) fn compile(ctx: &Ctx<'_>, name: &str, javascript: &str) -> rquickjs::Result<Self> {
        let module = Module::declare(ctx.clone(), name, javascript)?;
        let bytes = module.write(WriteOptions::default())?;
        // Kept for ever: engines point into the bytes. A rule is compiled once a process.
        Ok(Self(Box::leak(bytes.into_boxed_slice())))
    }

    /// The module in another engine.
    #[expect(unsafe_code, reason = "the engine trusts bytecode; the safety argument is below")]
    pub(super) fn load<'js>(self, ctx: &Ctx<'js>) -> rquickjs::Result<Module<'js, Declared>> {
        // SAFETY: the bytes are valid bytecode of this very engine: the field is private, its only
        // constructor takes what `Module::write` gave, and nothing can change them afterwards. The
        // engine may keep pointers into them (`JS_READ_OBJ_ROM_DATA`); they are never freed.
        unsafe { Module::load(ctx.clone(), self.0) }
    }
}
