//! The filters, judged by an interpreter, by the kernel, and by programs that must run under them.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start programs under a filter and write what these work on"
)]

mod attempts;
mod interpreter;
mod programs;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::prelude::*;

use self::interpreter::{Answer, answer};
use super::call::Call;
use super::guarded::GUARDED;
use super::*;

/// An error that no call gives by itself: what answers with it never reached the kernel.
const MARK: i32 = libc::EHWPOISON;

static FILTERS: LazyLock<[BpfProgram; 3]> =
    LazyLock::new(|| Profile::ALL.map(|profile| compile(profile).unwrap()));

fn marked(profile: Profile) -> BpfProgram {
    answering(profile, MARK as u32).unwrap()
}

fn every_call() -> Vec<Call> {
    let allowed = ALLOWED.iter().flat_map(|group| group.calls);
    let refused = REFUSED.iter().chain(ABSENT).flat_map(|refusal| refusal.calls);
    let guarded = GUARDED.iter().map(|guarded| &guarded.call);
    allowed.chain(refused).chain(guarded).copied().collect()
}

#[test]
fn every_call_is_in_one_table_and_once() {
    let mut names = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    for call in every_call() {
        assert!(!call.name.is_empty() && !call.name.starts_with("SYS"), "{call:?}");
        assert!(names.insert(call.name, call).is_none(), "{call:?} is there twice");
        if let Some(number) = call.number {
            assert!(numbers.insert(number, call).is_none(), "{call:?} has another's number");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn every_number_up_to_the_newest_is_in_a_table() {
    let known: Vec<i64> = every_call().iter().filter_map(|call| call.number).collect();
    let unused = 337..424;
    let missing: Vec<i64> = (0..=i64::from(NEWEST))
        .filter(|number| !unused.contains(number) && !known.contains(number))
        .collect();
    assert_eq!(missing, Vec::<i64>::new());
    assert!(known.iter().all(|number| *number <= i64::from(NEWEST)));
}

#[test]
fn what_is_refused_has_a_name_and_a_reason() {
    for profile in Profile::ALL {
        let table = refused(profile);
        assert!(table.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(table.iter().all(|row| !row.why.is_empty()));
        let unless = |name| table.iter().find(|row| row.name == name).map(|row| row.unless);
        assert_eq!(unless("ptrace"), Some(None));
        assert!(unless("socket").unwrap().is_some());
        assert_eq!(unless("read"), None);
    }
    assert!(refused(Profile::Strict).iter().any(|row| row.name == "fork"));
    assert!(!refused(Profile::Standard).iter().any(|row| row.name == "fork"));
}

#[test]
fn standard_net_is_standard() {
    assert_eq!(compile(Profile::StandardNet).unwrap(), compile(Profile::Standard).unwrap());
}

#[test]
fn a_refusal_is_eperm_and_an_absence_is_enosys() {
    for profile in Profile::ALL {
        let filter = compile(profile).unwrap();
        let ask = |number| answer(&filter, ARCHITECTURE.1, number, [0; 6]);
        assert_eq!(ask(libc::SYS_ptrace as u32), Answer::Errno(libc::EPERM));
        assert_eq!(ask(libc::SYS_clone3 as u32), Answer::Errno(libc::ENOSYS));
        assert_eq!(ask(NEWEST + 1), Answer::Errno(libc::ENOSYS));
        assert_eq!(ask(0x4000_0000), Answer::Errno(libc::ENOSYS));
        assert_eq!(ask(u32::MAX), Answer::Errno(libc::ENOSYS));
        assert_eq!(ask(libc::SYS_read as u32), Answer::Allow);
    }
}

#[test]
fn a_filter_has_room_to_grow() {
    for profile in Profile::ALL {
        assert!(compile(profile).unwrap().len() < MOST_INSTRUCTIONS * 3 / 4);
    }
}

/// Arguments that mean something to some call, and any others.
fn arguments() -> impl Strategy<Value = [u64; 6]> {
    let telling = GUARDED.iter().flat_map(|guarded| {
        [guarded.strict.when, guarded.standard.when].into_iter().flat_map(|when| match when {
            When::Never => Vec::new(),
            When::Any(any) => any
                .concat()
                .into_iter()
                .map(|test| match test {
                    Test::Bits { value, .. } => value,
                    Test::Not { value, .. } => u64::from(value),
                })
                .collect(),
        })
    });
    let telling: Vec<u64> = telling.collect();
    let one = prop_oneof![
        4 => proptest::sample::select(telling),
        1 => 0_u64..64,
        1 => any::<u64>(),
        1 => (0_u32..32).prop_map(|bit| 1 << bit),
    ];
    proptest::array::uniform6(one)
}

/// Numbers of calls, the guarded ones more often.
fn numbers() -> impl Strategy<Value = u32> {
    let guarded: Vec<u32> =
        GUARDED.iter().filter_map(|row| row.call.number).map(|number| number as u32).collect();
    prop_oneof![3 => proptest::sample::select(guarded), 1 => 0..NEWEST + 10, 1 => any::<u32>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn what_strict_allows_standard_allows(number in numbers(), args in arguments()) {
        let [strict, standard, _] = &*FILTERS;
        let ask = |filter| answer(filter, ARCHITECTURE.1, number, args);
        if ask(strict) == Answer::Allow {
            prop_assert_eq!(ask(standard), Answer::Allow);
        }
    }

    #[test]
    fn a_call_of_another_architecture_ends_the_process(
        number in any::<u32>(),
        machine in any::<u32>(),
    ) {
        prop_assume!(machine != ARCHITECTURE.1);
        for filter in &*FILTERS {
            prop_assert_eq!(answer(filter, machine, number, [0; 6]), Answer::Kill);
        }
    }

    #[test]
    fn no_arguments_make_a_namespace_or_a_device(args in arguments()) {
        let [_, standard, _] = &*FILTERS;
        let passes = |number: i64| {
            answer(standard, ARCHITECTURE.1, number as u32, args) == Answer::Allow
        };
        if passes(libc::SYS_clone) {
            prop_assert_eq!(args[0] & 0x7e02_0000, 0);
        }
        if passes(libc::SYS_unshare) {
            prop_assert_eq!(args[0] & 0x7e02_0080, 0);
        }
        if passes(libc::SYS_mknodat) {
            let kind = args[2] as u32 & libc::S_IFMT;
            prop_assert!(kind != libc::S_IFCHR && kind != libc::S_IFBLK);
        }
        if passes(libc::SYS_ioctl) {
            prop_assert!(![0x5412, 0x541c].contains(&(args[1] as u32)));
        }
    }
}
