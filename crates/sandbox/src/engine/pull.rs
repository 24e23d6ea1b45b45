//! How far an image is that an engine fetches, from what it says meanwhile: one object a line, about one layer each.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A line that is longer says nothing about layers.
const LONGEST: usize = 64 << 10;
/// Layers that are counted; images have a hundred and twenty-seven at most.
const LAYERS: usize = 512;
/// Hundredths of a layer that is there and not unpacked.
const LOADED: u64 = 80;

/// What was heard of a pull so far.
#[derive(Debug, Default)]
pub(super) struct Pull {
    /// The line that has not ended.
    line: Vec<u8>,
    /// Hundredths of each layer.
    layers: BTreeMap<String, u64>,
    /// What was told last. It never goes back: a layer that turns up late would make it.
    told: Option<u8>,
    failed: Option<String>,
}

/// What an engine says in a line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(default)]
    id: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    progress_detail: Option<Detail>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Detail {
    #[serde(default)]
    current: u64,
    #[serde(default)]
    total: u64,
}

impl Pull {
    /// Hears a piece of the answer; how far it is, if that is further than before.
    pub(super) fn hear(&mut self, piece: &[u8]) -> Option<u8> {
        let before = self.told;
        for byte in piece {
            if *byte == b'\n' {
                self.end_line();
            } else if self.line.len() < LONGEST {
                self.line.push(*byte);
            }
        }
        self.told.filter(|told| Some(*told) > before)
    }

    /// The answer is whole: what the engine said was wrong, if it did.
    pub(super) fn end(mut self) -> Option<String> {
        self.end_line();
        self.failed
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let Ok(line) = serde_json::from_slice::<Line>(&line) else { return };
        if line.error.is_some() {
            self.failed = line.error;
            return;
        }
        let of = |all: u64| {
            let Detail { current, total } = line.progress_detail.unwrap_or_default();
            current.min(total).saturating_mul(all).checked_div(total).unwrap_or_default()
        };
        let share = match line.status.as_str() {
            "Pulling fs layer" | "Waiting" => 0,
            "Downloading" => of(LOADED),
            "Verifying Checksum" | "Download complete" => LOADED,
            "Extracting" => LOADED + of(100 - LOADED),
            "Pull complete" | "Already exists" => 100,
            _ => return,
        };
        if self.layers.len() < LAYERS || self.layers.contains_key(&line.id) {
            self.layers.insert(line.id, share);
        }
        let whole: u64 = self.layers.values().sum();
        let whole = whole.checked_div(self.layers.len() as u64).unwrap_or_default();
        // It is there when the engine has answered, not before.
        let whole = u8::try_from(whole.min(99)).unwrap_or(99);
        self.told = self.told.max(Some(whole));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(pull: &mut Pull, lines: &[&str]) -> Vec<Option<u8>> {
        lines.iter().map(|line| pull.hear(format!("{line}\r\n").as_bytes())).collect()
    }

    #[test]
    fn sbx_10_a_pull_gets_further_layer_by_layer_and_never_back() {
        let mut pull = Pull::default();
        let told = heard(
            &mut pull,
            &[
                r#"{"status":"Pulling from team/tools","id":"12"}"#,
                r#"{"status":"Pulling fs layer","progressDetail":{},"id":"a"}"#,
                r#"{"status":"Downloading","progressDetail":{"current":50,"total":100},"id":"a"}"#,
                r#"{"status":"Pulling fs layer","progressDetail":{},"id":"b"}"#,
                r#"{"status":"Download complete","progressDetail":{},"id":"a"}"#,
                r#"{"status":"Downloading","progressDetail":{"current":100,"total":100},"id":"b"}"#,
                r#"{"status":"Extracting","progressDetail":{"current":1,"total":2},"id":"a"}"#,
                r#"{"status":"Pull complete","progressDetail":{},"id":"a"}"#,
                r#"{"status":"Pull complete","progressDetail":{},"id":"b"}"#,
                r#"{"status":"Digest: sha256:00"}"#,
            ],
        );
        let further =
            [None, Some(0), Some(40), None, None, Some(80), Some(85), Some(90), Some(99), None];
        assert_eq!(told, further);
        assert_eq!(pull.end(), None);
    }

    #[test]
    fn sbx_10_what_an_engine_says_is_wrong_is_kept_in_pieces_too() {
        let mut pull = Pull::default();
        for piece in [
            r#"{"status":"Pulling"#,
            " fs layer\",\"id\":\"a\"}\n{\"err",
            r#"or":"no such manifest"}"#,
        ] {
            pull.hear(piece.as_bytes());
        }
        assert_eq!(pull.end().as_deref(), Some("no such manifest"));
    }

    #[test]
    fn sbx_10_numbers_and_lines_that_make_no_sense_do_no_harm() {
        let mut pull = Pull::default();
        let long = "x".repeat(2 * LONGEST);
        let told = heard(
            &mut pull,
            &[
                "",
                "[]",
                "\u{0}",
                &long,
                r#"{"status":"Downloading","id":"a","progressDetail":{"current":5,"total":0}}"#,
                r#"{"status":"Downloading","id":"a","progressDetail":{"current":18446744073709551615,"total":18446744073709551615}}"#,
                r#"{"status":"Downloading","id":"a","progressDetail":{"current":7,"total":3}}"#,
                r#"{"status":"Downloading","id":"a","progressDetail":{"current":-7,"total":3}}"#,
            ],
        );
        assert_eq!(told.last(), Some(&None));
        assert!(told.iter().flatten().all(|told| *told <= 99), "{told:?}");
        for layer in 0..2 * LAYERS {
            let line = format!(r#"{{"status":"Waiting","id":"{layer}"}}"#);
            heard(&mut pull, &[&line]);
        }
        assert_eq!(pull.layers.len(), LAYERS);
    }
}
