//! Which entry may follow which.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

/// A skill in one of the states that differ, by its name in the table.
fn skill_in(state: &str) -> Option<Skill> {
    let name = name("a_skill");
    let all = [
        ("PROPOSED", proposed(&name, "p1")),
        ("building", started(&name, 1)),
        ("BUILT", built(&name, 1)),
        ("VERIFIED", verified(&name, 1)),
        ("TRUSTED", promoted(&name, 1)),
        ("REVOKED", revoked(&name)),
    ];
    let mut skill = None;
    for (at, (reached, entry)) in all.iter().enumerate() {
        if state == "none" {
            break;
        }
        apply(&mut skill, at as u64, entry).unwrap();
        if state == *reached {
            break;
        }
    }
    skill
}

fn proposed(name: &SkillName, id: &str) -> SkillEntry {
    let spec = spec(name.as_str()).checked().unwrap();
    SkillEntry::Proposed { proposal: id.to_owned(), spec, artifact: Digest::of(b"spec") }
}

fn revoked(name: &SkillName) -> SkillEntry {
    let (by, why) = ("ada".to_owned(), "a\nreason".to_owned());
    SkillEntry::Revoked { name: name.clone(), by, why }
}

fn researched(name: &SkillName, number: u32, triggers: &[&str]) -> SkillEntry {
    SkillEntry::Researched {
        name: name.clone(),
        build: format!("{name}-build-{number}"),
        failure: "TIMEOUT".to_owned(),
        triggers: triggers.iter().map(|trigger| (*trigger).to_owned()).collect(),
        note: Digest::of(b"note"),
    }
}

fn approved(name: &SkillName, number: u32) -> SkillEntry {
    let build = format!("{name}-build-{number}");
    SkillEntry::RetryApproved { name: name.clone(), build, by: "ada".to_owned() }
}

/// What is legal; everything else is refused.
const LEGAL: &str = "\
none + proposed = PROPOSED
PROPOSED + proposed = PROPOSED
PROPOSED + build_started = PROPOSED
building + proposed = PROPOSED
building + build_started = PROPOSED
building + built = BUILT
building + failed = PROPOSED
BUILT + build_started = PROPOSED
BUILT + verified = VERIFIED
BUILT + not_verified = BUILT
BUILT + researched = BUILT
VERIFIED + revoked = REVOKED
TRUSTED + revoked = REVOKED
TRUSTED + ran = TRUSTED
REVOKED + proposed = PROPOSED
REVOKED + build_started = PROPOSED
REVOKED + ran = REVOKED
";

#[test]
fn for_9_every_entry_is_legal_or_refused_for_every_standing() {
    let states = ["none", "PROPOSED", "building", "BUILT", "VERIFIED", "TRUSTED", "REVOKED"];
    let name = name("a_skill");
    let mut table = String::new();
    for state in states {
        let skill = skill_in(state);
        let builds = skill.as_ref().map_or(0, |skill| skill.next_attempt() - 1);
        let again = verified_with(&name, 1, gates(Some(Gate::Tests)));
        let fresh = |entry: SkillEntry| match entry {
            SkillEntry::Verified { name, build, gates, sealed, report, .. } => {
                let verification = "fresh".to_owned();
                SkillEntry::Verified { name, build, verification, gates, sealed, report }
            }
            other => other,
        };
        let entries = [
            ("proposed", proposed(&name, "p2")),
            ("build_started", started(&name, builds + 1)),
            ("built", built(&name, 1)),
            ("failed", failed(&name, 1)),
            ("verified", fresh(verified(&name, 1))),
            ("not_verified", fresh(again)),
            ("researched", researched(&name, 1, &[])),
            ("retry_approved", approved(&name, 1)),
            ("promoted", promoted(&name, 1)),
            ("revoked", revoked(&name)),
            ("ran", ran(&name, "run-1", None)),
        ];
        for (what, entry) in entries {
            let mut after = skill.clone();
            let told = match apply(&mut after, 9, &entry) {
                Ok(()) => after.as_ref().unwrap().standing.name(),
                Err(_) => {
                    assert_eq!(after, skill, "{what} at {state} is refused and changes nothing");
                    continue;
                }
            };
            writeln!(table, "{state} + {what} = {told}").unwrap();
        }
    }
    // A promotion is legal in one place, told apart because it is the one that matters.
    let promotion = "VERIFIED + promoted = TRUSTED\n";
    assert_eq!(table.replace(promotion, ""), LEGAL);
    assert_eq!(table.matches(promotion).count(), 1);
}

#[test]
fn lesson_l25_nothing_is_verified_without_a_build_that_succeeded() {
    let name = name("a_skill");
    let refused = |skill: &mut Option<Skill>, entry: SkillEntry| {
        apply(skill, 5, &entry).unwrap_err().to_string()
    };
    let mut skill = skill_in("PROPOSED");
    let told = refused(&mut skill, verified(&name, 1));
    assert!(told.contains("is PROPOSED: a verification needs a build that succeeded"), "{told}");
    let mut skill = skill_in("building");
    apply(&mut skill, 4, &failed(&name, 1)).unwrap();
    refused(&mut skill, verified(&name, 1));
    // Another build than the last one.
    let mut skill = skill_in("BUILT");
    apply(&mut skill, 4, &started(&name, 2)).unwrap();
    apply(&mut skill, 5, &built(&name, 2)).unwrap();
    let told = refused(&mut skill, verified(&name, 1));
    assert!(told.starts_with("build `a_skill-build-1` is not this skill's last build"), "{told}");
    apply(&mut skill, 6, &verified(&name, 2)).unwrap();
}

#[test]
fn for_5_a_gate_that_is_missing_told_twice_or_failed_makes_nothing_verified() {
    let name = name("a_skill");
    for gate in Gate::ALL {
        let mut missing = gates(None);
        missing.retain(|result| result.gate != gate);
        let mut twice = gates(Some(gate));
        twice.push(GateResult { passed: true, ..twice[0].clone() });
        let mut doubled = gates(Some(gate));
        let passed = doubled.iter().find(|result| result.gate == gate).unwrap().clone();
        doubled.push(GateResult { passed: true, ..passed });
        for gates in [missing, twice, doubled] {
            let mut skill = skill_in("BUILT");
            let told = apply(&mut skill, 5, &verified_with(&name, 1, gates)).unwrap_err();
            assert!(matches!(told, Illegal::Gates(_)), "{told}");
        }
        let mut skill = skill_in("BUILT");
        apply(&mut skill, 5, &verified_with(&name, 1, gates(Some(gate)))).unwrap();
        assert_eq!(skill.as_ref().unwrap().standing, Standing::Built);
        assert!(apply(&mut skill, 6, &promoted(&name, 1)).is_err());
    }
}

#[test]
fn lesson_l25_what_is_promoted_is_what_was_verified() {
    let name = name("a_skill");
    let SkillEntry::Promoted { verification, sealed, by, .. } = promoted(&name, 1) else {
        panic!("it is one")
    };
    let mut other = sealed.clone();
    other.files[0].sha256 = Digest::of(b"something else");
    let mut less = sealed.clone();
    less.files.pop();
    let rebased = Sealed { base: Digest::of(b"another base"), ..sealed.clone() };
    let elsewhere = "another-verification".to_owned();
    for (verification, sealed) in [
        (verification.clone(), other),
        (verification.clone(), less),
        (verification, rebased),
        (elsewhere, sealed),
    ] {
        let (name, by) = (name.clone(), by.clone());
        let entry = SkillEntry::Promoted { name, verification, sealed, by };
        let told = apply(&mut skill_in("VERIFIED"), 5, &entry).unwrap_err();
        assert!(matches!(told, Illegal::Unverified(_)), "{told}");
    }
}

#[test]
fn for_4_files_that_are_not_the_skills_own_are_refused() {
    let name = name("a_skill");
    let pinned = |text: &str| Pinned { path: path(text), sha256: Digest::of(b"x") };
    let with = |text: &str| [files_of(&name), vec![pinned(text)]].concat();
    let cases = [
        files_of(&name)[..1].to_vec(),
        vec![],
        with(".fluffy/skills/another.py"),
        with(".fluffy/policy.yaml"),
        with("src/main.rs"),
        with(".fluffy/skills/a_skill.py"),
    ];
    for files in cases {
        let told = apply(&mut skill_in("building"), 5, &ended(&name, 1, BuildEnd::Built { files }));
        assert!(matches!(told, Err(Illegal::Files(_))), "{told:?}");
    }
    let files = with(SUPPORT_GATEWAY);
    apply(&mut skill_in("building"), 5, &ended(&name, 1, BuildEnd::Built { files })).unwrap();
}

const SUPPORT_GATEWAY: &str = ".fluffy/skills/support/gateway.py";

#[test]
fn a_verification_looks_at_what_the_build_left() {
    let name = name("a_skill");
    let SkillEntry::Verified { build, verification, gates, sealed, report, .. } =
        verified(&name, 1)
    else {
        panic!("it is one")
    };
    let mut changed = sealed.clone();
    changed.files[0].sha256 = Digest::of(b"another");
    let mut backwards = sealed;
    backwards.files.reverse();
    for sealed in [changed, backwards] {
        let (name, build, verification) = (name.clone(), build.clone(), verification.clone());
        let gates = gates.clone();
        let entry = SkillEntry::Verified { name, build, verification, gates, sealed, report };
        apply(&mut skill_in("BUILT"), 5, &entry).unwrap_err();
    }
}

#[test]
fn lesson_l34_a_build_follows_an_older_build_of_the_same_skill_and_no_id_is_given_twice() {
    let name = name("a_skill");
    let attempt = |build: &str, number: u32, parent: Option<&str>| {
        let attempt = Attempt {
            build: build.to_owned(),
            number,
            parent: parent.map(str::to_owned),
            packet: Digest::of(b"packet"),
            builder: "claude".to_owned(),
        };
        SkillEntry::BuildStarted { name: name.clone(), attempt }
    };
    let first = "a_skill-build-1";
    let mut skill = skill_in("building");
    apply(&mut skill, 3, &failed(&name, 1)).unwrap();
    for (entry, why) in [
        (attempt("b2", 2, Some("b2")), "its own parent"),
        (attempt("b2", 2, Some("b3")), "a parent that is not there yet"),
        (attempt(first, 2, None), "an id that is taken"),
        (attempt("b2", 1, Some(first)), "a number that is taken"),
        (attempt("b2", 3, Some(first)), "a number that is not next"),
        (attempt("../b2", 2, Some(first)), "an id that is a path"),
        (attempt("", 2, Some(first)), "no id"),
        (attempt(&"b".repeat(65), 2, Some(first)), "a long id"),
    ] {
        assert!(apply(&mut skill, 4, &entry).is_err(), "{why}");
    }
    apply(&mut skill, 4, &attempt("b2", 2, Some(first))).unwrap();
    apply(&mut skill, 5, &attempt("b3", 3, Some("b2"))).unwrap();
}

#[test]
fn for_8_a_person_agrees_before_the_next_attempt_where_research_demands_it() {
    let name = name("a_skill");
    let mut skill = skill_in("building");
    apply(&mut skill, 3, &failed(&name, 1)).unwrap();
    apply(&mut skill, 4, &researched(&name, 1, &["third failure"])).unwrap();
    assert_eq!(skill.as_ref().unwrap().awaits().collect::<Vec<_>>(), ["third failure"]);
    let told = apply(&mut skill, 5, &started(&name, 2)).unwrap_err();
    assert!(matches!(told, Illegal::Unapproved(_)), "{told}");
    // Proposing it anew does not lead around the person.
    apply(&mut skill, 6, &proposed(&name, "p2")).unwrap();
    assert!(apply(&mut skill, 7, &started(&name, 2)).is_err());
    apply(&mut skill, 8, &approved(&name, 1)).unwrap();
    assert!(apply(&mut skill, 9, &approved(&name, 1)).is_err(), "there is nothing left to approve");
    apply(&mut skill, 10, &started(&name, 2)).unwrap();
}

#[test]
fn an_end_of_a_build_of_an_earlier_proposal_is_refused() {
    let name = name("a_skill");
    let mut skill = skill_in("building");
    apply(&mut skill, 4, &proposed(&name, "p2")).unwrap();
    assert!(apply(&mut skill, 5, &built(&name, 1)).is_err());
    assert!(apply(&mut skill, 5, &proposed(&name, "p1")).is_err(), "the id is taken");
}

/// Any entry, of three skills, most of them at the wrong time.
pub(super) fn any_entry() -> impl Strategy<Value = SkillEntry> {
    (0..3_usize, 1..4_u32, 0..12_u8, 0..4_u8).prop_map(|(which, number, what, run)| {
        let name = name(["first", "second", "third"][which]);
        let gate = Gate::ALL[usize::from(run)];
        match what {
            0 => proposed(&name, &format!("p{number}")),
            1 | 2 => started(&name, number),
            3 | 4 => built(&name, number),
            5 => failed(&name, number),
            6 => verified(&name, number),
            7 => verified_with(&name, number, gates(Some(gate))),
            8 => researched(&name, number, if run == 0 { &["again"] } else { &[] }),
            9 => approved(&name, number),
            10 => match number {
                1 => revoked(&name),
                number => promoted(&name, number - 1),
            },
            _more => {
                let parent = run.checked_sub(1).map(|run| format!("run-{run}"));
                ran(&name, &format!("run-{run}"), parent.as_deref())
            }
        }
    })
}

/// What brings a skill on, so that random entries meet skills in every standing.
pub(super) fn likely_entries() -> impl Strategy<Value = Vec<SkillEntry>> {
    let way = (0..3_usize, 0..6_usize).prop_map(|(which, length)| {
        let name = name(["first", "second", "third"][which]);
        let way = [
            proposed(&name, "p1"),
            started(&name, 1),
            built(&name, 1),
            verified(&name, 1),
            promoted(&name, 1),
        ];
        way.into_iter().take(length).collect::<Vec<_>>()
    });
    let any = proptest::collection::vec(any_entry(), 0..8);
    proptest::collection::vec((way, any), 1..4)
        .prop_map(|parts| parts.into_iter().flat_map(|(way, any)| [way, any].concat()).collect())
}

proptest! {
    #[test]
    fn folding_all_at_once_is_folding_one_by_one_through_what_is_stored(
        entries in likely_entries()
    ) {
        for one in ["first", "second", "third"].map(name) {
            let (mut whole, mut stored) = (None, String::from("null"));
            for (at, entry) in entries.iter().enumerate().filter(|(_, it)| *it.name() == one) {
                let before = whole.clone();
                let legal = apply(&mut whole, at as u64, entry);
                if legal.is_err() {
                    prop_assert_eq!(&whole, &before);
                }
                let mut step: Option<Skill> = serde_json::from_str(&stored).unwrap();
                prop_assert_eq!(apply(&mut step, at as u64, entry), legal);
                stored = serde_json::to_string(&step).unwrap();
            }
            prop_assert_eq!(&serde_json::from_str::<Option<Skill>>(&stored).unwrap(), &whole);
            check_skill(whole.as_ref());
        }
    }
}

/// What holds of every skill, however it came about.
fn check_skill(skill: Option<&Skill>) {
    let Some(skill) = skill else { return };
    for (at, build) in skill.builds.iter().enumerate() {
        assert_eq!(build.attempt.number as usize, at + 1);
        if let Some(parent) = &build.attempt.parent {
            assert!(skill.builds[..at].iter().any(|older| older.attempt.build == *parent));
        }
    }
    if skill.standing >= Standing::Verified && skill.standing != Standing::Revoked {
        let last = skill.verifications.last().unwrap();
        assert!(last.gates.iter().all(|gate| gate.passed) && last.gates.len() == 5);
        assert_eq!(last.build, skill.builds.last().unwrap().attempt.build);
    }
    if skill.standing == Standing::Trusted {
        assert_eq!(skill.promotion().unwrap().sealed, skill.verifications.last().unwrap().sealed);
    }
}
