//! A proposal and its packet, for tests.

use serde_json::json;

use crate::{Proposal, SideEffect, SkillName};

/// A skill that writes notes.
pub(crate) fn proposal() -> Proposal {
    let schema = json!({"type": "object", "additionalProperties": false});
    Proposal {
        name: SkillName::parse("write_note").unwrap(),
        description: "Writes a note".to_owned(),
        input: schema.clone(),
        output: schema,
        side_effect: SideEffect::FileWrite,
        reads: Vec::new(),
        writes: vec![fluffy_base::ProjectPath::parse("notes").unwrap()],
        hosts: Vec::new(),
        secrets: Vec::new(),
        model: false,
    }
}

/// One that asks a server, with a key.
pub(crate) fn asking() -> Proposal {
    Proposal {
        side_effect: SideEffect::SecretRead,
        writes: Vec::new(),
        hosts: vec!["api.example.org:443".to_owned(), "other.example.org".to_owned()],
        secrets: vec!["EXAMPLE_API_KEY".to_owned()],
        ..proposal()
    }
}

/// A packet as a builder gets it.
pub(crate) const PACKET: &str = "\
# Build the skill `write_note`

Write these two files and no others:

- `.fluffy/skills/write_note.py`
- `.fluffy/skills/tests/test_write_note.py`

Side-effect class: FILE_WRITE. It may write below `notes`, and nowhere else.
It must not use the network, start processes or read secrets.

Input:

```json
{\"additionalProperties\": false, \"type\": \"object\"}
```

Guidance:

- keep functions short
- give every function its types
- test the empty input
- test names with blanks
";
