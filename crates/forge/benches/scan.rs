//! What it costs to read a skill of ordinary size: both gates, and the parser alone.
//!
//! `cargo bench --package fluffy-forge --bench scan`

#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

use divan::{Bencher, black_box};
use fluffy_base::ProjectPath;
use fluffy_forge::{Proposal, ScanRules, SideEffect, SkillName, SourceFile, check, scan};

/// The skill, with enough functions of its own to have about 150 lines.
const FUNCTIONS: usize = 12;

fn main() {
    divan::main();
}

fn text() -> String {
    let function = |number: usize| {
        format!(
            "\n    def _step_{number}(self, notes: list[str], limit: int = {number}) -> dict[str, int]:\n        \
             \"\"\"Counts words in notes, longest first.\"\"\"\n        counts: dict[str, int] = {{}}\n        \
             for note in notes[:limit]:\n            path = self.folder(\"notes\") / f\"{{note}}.md\"\n            \
             if not path.exists():\n                continue\n            \
             for word in WORD.findall(path.read_text(encoding=\"utf-8\")):\n                \
             counts[word.lower()] = counts.get(word.lower(), 0) + 1\n        \
             return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[: limit * 2])\n"
        )
    };
    let functions: String = (0..FUNCTIONS).map(function).collect();
    format!(
        "\"\"\"Counts words.\"\"\"\n\nimport json\nimport re\nfrom datetime import datetime\n\n\
         from fluffy_skill import BaseSkill\n\nWORD = re.compile(r\"\\w+\")\n\n\nclass CountWordsSkill(BaseSkill):\n    \
         name = \"count_words\"\n    description = \"Counts words.\"\n    side_effect_class = \"READ_ONLY\"\n{functions}\n    \
         def execute(self, input: dict[str, object]) -> dict[str, object]:\n        \
         steps = [self._step_0([str(input[\"note\"])])]\n        \
         return {{\"steps\": json.loads(json.dumps(steps)), \"at\": datetime(2025, 1, 2).isoformat()}}\n"
    )
}

fn proposal() -> Proposal {
    Proposal {
        name: SkillName::parse("count_words").unwrap(),
        description: "Counts words.".to_owned(),
        input: serde_json::json!({ "type": "object" }),
        output: serde_json::json!({ "type": "object" }),
        side_effect: SideEffect::ReadOnly,
        reads: vec![ProjectPath::parse("notes").unwrap()],
        writes: Vec::new(),
        hosts: Vec::new(),
        secrets: Vec::new(),
        model: false,
    }
}

fn files(proposal: &Proposal) -> Vec<SourceFile> {
    let tests = "from count_words import CountWordsSkill\n\n\ndef test_name() -> None:\n    \
                 assert CountWordsSkill.name == \"count_words\"\n";
    vec![
        SourceFile { path: proposal.name.skill_path().unwrap(), bytes: text().into_bytes() },
        SourceFile { path: proposal.name.test_path().unwrap(), bytes: tests.into() },
    ]
}

#[divan::bench]
fn scan_and_check(bencher: Bencher) {
    let proposal = proposal();
    let files = files(&proposal);
    let rules = ScanRules::default().for_proposal(&proposal);
    let changed: Vec<ProjectPath> = files.iter().map(|file| file.path.clone()).collect();
    assert!(scan(&files, &rules).passed && check(&files, &proposal, &changed).passed);
    bencher
        .bench(|| (scan(black_box(&files), &rules), check(black_box(&files), &proposal, &changed)));
}

#[divan::bench]
fn scan_alone(bencher: Bencher) {
    let proposal = proposal();
    let files = files(&proposal);
    let rules = ScanRules::default().for_proposal(&proposal);
    bencher.bench(|| scan(black_box(&files), &rules));
}

#[divan::bench]
fn parser_alone(bencher: Bencher) {
    let text = text();
    bencher.bench(|| ruff_python_parser::parse_module(black_box(&text)).unwrap());
}
