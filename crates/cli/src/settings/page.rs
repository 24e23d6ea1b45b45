//! The reference page: the table of settings, for people.

use std::fmt::Write as _;

use crate::settings::table::{Layer, Meeting, SETTINGS, Setting};

/// What stands before the table.
const BEFORE: &str = "\
# Settings

<!-- Written by `fluffy config reference`; change the table in `crates/cli/src/settings/table.rs` and write it again. -->

A setting is looked for in this order, and the first that says it holds:

1. arguments, such as `--max-turns 20`
2. variables of the environment, such as `FLUFFY_MAX_TURNS=20`; an empty one says nothing
3. the project: `.fluffy/config.yaml`, meant to be committed; the model cannot write it
4. your own file: `$XDG_CONFIG_HOME/fluffy/config.yaml`, usually `~/.config/fluffy/config.yaml`
5. defaults

A dot in a name is a section in a file: `test.command` is `command:` below `test:`. What is misspelt, said twice or
said wrongly is an error (exit code 2) with file, line and column; files are YAML without anchors.

```sh
fluffy config list --origin                 # what holds here, and who says so; no secret is shown
fluffy config get max_turns --origin
fluffy config set max_turns 20              # in your own file; --in-project for the project's. Comments stay
fluffy config unset max_turns
fluffy config path                          # where the files are
```

## What a project may say

A project's file comes from whoever wrote the project. So it has no word for where keys and code are sent, for how long
evidence is kept and for what separates foreign code from your machine. In the table, *stricter* means that it
cannot loosen what you say: the lower cap, the stricter mode and the stricter treatment of hooks hold; caps and hooks
are never looser than by default unless you say so yourself. A project that wants `explore` or `debug` gets the same
questions asked as if you had wanted it, and `--yes` does not answer for you. No setting, from wherever, switches a rule of the
kernel off: rules stand in the [policy](policy.md). Settings marked with ! bear on security.

";

/// The whole page.
pub(crate) fn page() -> String {
    let mut page = BEFORE.to_owned();
    let (of_providers, others): (Vec<_>, Vec<_>) =
        SETTINGS.iter().partition(|setting| setting.name.starts_with("providers."));
    page += "## All settings\n\n| setting | value | default | argument, variable | yours | project | |\n";
    page += "|---|---|---|---|---|---|---|\n";
    for setting in others {
        let _infallible = writeln!(page, "{}", row(setting));
    }
    page += "\n## Providers\n\nIn your own file alone, `*` being the provider's name; [providers.md](providers.md) has an example.\n\n";
    page += "| setting | value | |\n|---|---|---|\n";
    for setting in of_providers {
        let (name, wanted, about) = (setting.name, setting.kind.wanted(), setting.about);
        let _infallible = writeln!(page, "| `{name}` | {wanted} | {about} |");
    }
    page
}

fn row(setting: &Setting) -> String {
    let Setting { name, kind, about, .. } = setting;
    let mark = if setting.security { " !" } else { "" };
    let default = setting.default.map_or_else(|| "none".to_owned(), |text| format!("`{text}`"));
    let typed: Vec<String> = setting
        .argument
        .map(str::to_owned)
        .into_iter()
        .chain(setting.variable())
        .map(|word| format!("`{word}`"))
        .collect();
    let user = if setting.is_said_by(Layer::User) { "yes" } else { "no" };
    let project = match setting.project {
        Meeting::Never(_) => "no",
        Meeting::Replaces => "yes",
        Meeting::NotLooserThanUser | Meeting::NotLooserThanDefault => "stricter",
    };
    let wanted = kind.wanted();
    let typed = typed.join(", ");
    format!("| `{name}`{mark} | {wanted} | {default} | {typed} | {user} | {project} | {about} |")
}

#[cfg(test)]
mod tests {
    #[test]
    fn cli_4_the_page_of_settings_is_what_the_table_says() {
        let written = include_str!("../../../../docs/configuration.md");
        assert!(
            written == super::page(),
            "write it again: cargo run -p fluffy-cli -- config reference > docs/configuration.md"
        );
    }
}
