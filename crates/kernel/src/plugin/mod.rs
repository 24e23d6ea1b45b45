//! Plugins: tools of others, each plugin a process of its own in a sandbox of its own.
//!
//! ```text
//! fluffy plugin install ── Package ── Manifest ── checks ── `plugin.install` ── a person ── Roll (ledger), store
//!                                                                                             │
//!  session begins ── Plugins::register ── sealed files, names, capabilities against the policy ┴─► REGISTERED or REJECTED
//!                                             │
//!  model ── call ── Kernel::submit ── rules ── PluginTool ── Plugin: LOADED at the first call ── handshake ── ACTIVE
//!                                                              │ frames over two pipes            │
//!                                                              └─ crash, hang, flood, nonsense ──► DISABLED
//! ```
//!
//! **Invariant.** What runs is what a person agreed to: the bytes are hashed anew at every load, and the bytes that were
//! hashed are those that are shown to the process.
//!
//! **Invariant.** What a plugin is and may do is decided here. Its manifest asks; it names no tool of ours, gives itself no
//! tag that rules go by, and sees nothing that it did not ask for or that the rules keep from the model.
//!
//! **Invariant.** A plugin that does not speak as agreed is ended and stays disabled until a person enables it again.

mod call;
mod check;
mod error;
mod files;
mod life;
mod manifest;
mod package;
mod person;
mod protocol;
mod register;
mod roll;
mod store;
mod tool;

pub use self::error::PluginError;
pub use self::life::Stage;
pub use self::manifest::{
    MANIFEST, Manifest, PluginName, PluginRuntime, PluginTemplate, ToolDefinition,
};
pub use self::package::{Package, PackageError, PackedFile, Unpacked};
pub use self::person::{PluginChange, PluginDone, PluginStep};
pub use self::protocol::{PLUGIN_API, PLUGIN_API_OLDEST};
pub use self::register::{Interpreters, PluginOptions, Plugins, Surveyed};
pub use self::roll::{Disabled, Installed, Roll};
pub use self::tool::PluginTool;
