//! `fluffy plugin new`: a plugin to begin with, in one of three languages, with the kit beside it.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use fluffy_kernel::PluginName;
use serde_json::json;

use crate::args::{NewPluginArgs, PluginLanguage};
use crate::environment::Environment;
use crate::explain::{CliError, DONE};
use crate::output::{Output, Tone};

/// The files of a template, by path.
type Template = [(&'static str, &'static str)];

const PYTHON: &Template = &[
    ("plugin.yaml", include_str!("../../../../../sdk/python/template/plugin.yaml")),
    ("main.py", include_str!("../../../../../sdk/python/template/main.py")),
    ("fluffy_plugin.py", include_str!("../../../../../sdk/python/fluffy_plugin.py")),
];

const TYPESCRIPT: &Template = &[
    ("plugin.yaml", include_str!("../../../../../sdk/typescript/template/plugin.yaml")),
    ("main.js", include_str!("../../../../../sdk/typescript/template/main.js")),
    ("package.json", include_str!("../../../../../sdk/typescript/template/package.json")),
    ("tsconfig.json", include_str!("../../../../../sdk/typescript/template/tsconfig.json")),
    ("fluffy_plugin.js", include_str!("../../../../../sdk/typescript/fluffy_plugin.js")),
    ("fluffy_plugin.d.ts", include_str!("../../../../../sdk/typescript/fluffy_plugin.d.ts")),
];

const RUST: &Template = &[
    ("plugin.yaml", include_str!("../../../../../sdk/rust/template/plugin.yaml")),
    ("Cargo.toml", include_str!("../../../../../sdk/rust/template/Cargo.toml.txt")),
    ("build", include_str!("../../../../../sdk/rust/template/build")),
    ("src/main.rs", include_str!("../../../../../sdk/rust/template/main.rs")),
    ("src/fluffy_plugin.rs", include_str!("../../../../../sdk/rust/src/fluffy_plugin.rs")),
];

pub(super) fn run(
    environment: &Environment,
    args: &NewPluginArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let name = PluginName::parse(&args.name).map_err(|why| CliError::Value {
        given: fluffy_base::Excerpt::new(&args.name, 80).to_string(),
        wanted: format!("a name: {why}"),
    })?;
    let here = environment.current_dir.clone().ok_or(CliError::NoCurrentDir)?;
    let dir = here.join(args.dir.clone().unwrap_or_else(|| name.as_str().into()));
    if dir.symlink_metadata().is_ok() {
        return Err(CliError::Exists(dir));
    }
    let template = match args.language {
        PluginLanguage::Python => PYTHON,
        PluginLanguage::Typescript => TYPESCRIPT,
        PluginLanguage::Rust => RUST,
    };
    let group = name.as_str().replace('-', "_");
    for (path, text) in template {
        let text = text.replace("NAME_OF_PLUGIN", name.as_str()).replace("GROUP_OF_TOOLS", &group);
        write(&dir.join(path), &text)?;
    }
    let tool = format!("{group}.greet");
    let shown = dir.display().to_string();
    let build = (args.language == PluginLanguage::Rust).then(|| format!("(cd {shown} && ./build)"));
    let next = build.into_iter().chain([
        format!("fluffy plugin install {shown}"),
        format!("fluffy plugin call {tool} --input '{{\"name\":\"Ada\"}}'"),
    ]);
    let next: Vec<_> = next.collect();
    if args.json {
        let files: Vec<_> = template.iter().map(|(path, _)| *path).collect();
        output.line(json!({ "name": name, "dir": shown, "files": files, "next": next }))?;
        return Ok(DONE);
    }
    output.line(format!(
        "{shown} is a plugin with one tool, {}",
        output.paint(Tone::Strong, &tool)
    ))?;
    for command in next {
        output.line(format!("  {command}"))?;
    }
    Ok(DONE)
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let failed = |source| CliError::File { action: "write", path: path.to_owned(), source };
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above).map_err(failed)?;
    }
    // A script of a template begins as scripts do.
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
