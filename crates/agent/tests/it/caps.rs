//! Caps hold in every mode, and before the turn that would pass them.

use std::sync::atomic::Ordering;

use fluffy_agent::{Cap, Caps, Outcome};
use fluffy_provider::Prices;

use crate::scripted::{ScriptedBench, ScriptedProvider, run_within, say, say_using};

fn endless(turns: usize, input: u64, output: u64) -> ScriptedProvider {
    let turn = |_| say_using("", &[("fs.read", "{}")], input, output);
    ScriptedProvider::new((0..turns).map(turn).collect())
}

#[test]
fn fifty_turns_are_enough_for_a_model_that_never_ends() {
    let provider = endless(200, 100, 1);
    let ended = run_within(&ScriptedBench::default(), &provider, Caps::default());
    assert_eq!(ended.outcome, Outcome::CapReached(Cap::Turns(50)));
    assert_eq!((provider.asked().len(), ended.spent.turns), (50, 50));
}

#[test]
fn a_turn_that_would_pass_the_tokens_is_not_asked_for() {
    let caps = Caps { tokens: Some(10_000), ..Caps::default() };
    let provider = endless(200, 2_000, 300);
    let ended = run_within(&ScriptedBench::default(), &provider, caps);
    assert_eq!(ended.outcome, Outcome::CapReached(Cap::Tokens(10_000)));
    let used = ended.spent.usage.total();
    assert!(used <= 10_000 && used > 5_000, "{used}");
    let most: Vec<_> = provider.asked().iter().map(|r| r.max_output_tokens).collect();
    assert!(most.is_sorted_by(|a, b| a >= b) && most[0] < 10_000, "{most:?}");
}

#[test]
fn a_turn_that_would_cost_too_much_is_not_asked_for() {
    let prices =
        Prices { input: 3_000_000, cached: 300_000, cache_written: 3_750_000, output: 15_000_000 };
    let caps = Caps { cost: Some(50_000), ..Caps::default() };
    let provider = ScriptedProvider { prices: Some(prices), ..endless(200, 2_000, 300) };
    let ended = run_within(&ScriptedBench::default(), &provider, caps);
    assert_eq!(ended.outcome, Outcome::CapReached(Cap::Cost(50_000)));
    assert!(ended.spent.cost <= 50_000 && ended.spent.cost > 20_000, "{:?}", ended.spent);
}

#[test]
fn a_cap_on_money_holds_where_no_price_is_known() {
    let caps = Caps { cost: Some(10_000), ..Caps::default() };
    let provider = ScriptedProvider { prices: None, ..endless(200, 0, 0) };
    let ended = run_within(&ScriptedBench::default(), &provider, caps);
    assert_eq!(ended.outcome, Outcome::CapReached(Cap::Cost(10_000)));
    assert!(provider.asked().is_empty());
}

#[test]
fn what_nobody_counted_is_guessed() {
    let caps = Caps { tokens: Some(20_000), ..Caps::default() };
    let turn = |_| say(&"word ".repeat(1_000), &[("fs.read", "{}")]);
    let provider = ScriptedProvider::new((0..200).map(turn).collect());
    let ended = run_within(&ScriptedBench::default(), &provider, caps);
    assert_eq!(ended.outcome, Outcome::CapReached(Cap::Tokens(20_000)));
    assert!(provider.asked().len() < 10);
}

#[test]
fn no_turns_are_no_turns() {
    let caps = Caps { turns: 0, ..Caps::default() };
    let provider = endless(1, 1, 1);
    let ended = run_within(&ScriptedBench::default(), &provider, caps);
    assert_eq!(ended.outcome, Outcome::CapReached(Cap::Turns(0)));
    assert!(provider.asked().is_empty());
}

#[test]
fn ai_4_the_provider_counts_where_a_guess_comes_near_a_cap_and_nowhere_else() {
    let first = ScriptedProvider::calling(&[]);
    run_within(&ScriptedBench::default(), &first, Caps::default());
    assert_eq!(first.counted.load(Ordering::SeqCst), 0, "no cap, no count");
    let bytes = first.asked()[0].bytes() as u64;
    // By the guess of three bytes a token it does not fit; counted, it does.
    let caps = Caps { tokens: Some(bytes / 3 + 100), ..Caps::default() };
    let guessed = run_within(&ScriptedBench::default(), &ScriptedProvider::calling(&[]), caps);
    assert!(matches!(guessed.outcome, Outcome::CapReached(_)), "{guessed:?}");
    let mut provider = ScriptedProvider::calling(&[]);
    provider.tokens = Some(bytes / 6);
    run_within(&ScriptedBench::default(), &provider, caps);
    assert!(provider.counted.load(Ordering::SeqCst) > 0);
    let asked = provider.asked();
    assert!(asked[0].max_output_tokens <= bytes / 3 + 100, "{}", asked[0].max_output_tokens);
}

#[test]
fn a_provider_whose_count_is_absurd_does_not_open_a_cap() {
    let first = ScriptedProvider::calling(&[]);
    run_within(&ScriptedBench::default(), &first, Caps::default());
    let bytes = first.asked()[0].bytes() as u64;
    let mut provider = ScriptedProvider::calling(&[]);
    provider.tokens = Some(0);
    let caps = Caps { tokens: Some(bytes / 8), ..Caps::default() };
    let ended = run_within(&ScriptedBench::default(), &provider, caps);
    assert!(matches!(ended.outcome, Outcome::CapReached(_)), "{ended:?}");
    assert!(provider.asked().is_empty());
}

#[test]
fn no_longer_answer_is_asked_for_than_the_model_can_give() {
    let mut provider = ScriptedProvider::calling(&[]);
    provider.longest = Some(1_000);
    run_within(&ScriptedBench::default(), &provider, Caps::default());
    assert!(provider.asked().iter().all(|request| request.max_output_tokens == 1_000));
}
