//! What is known of models: how much they see, how long they answer, what they cost.
//!
//! Taken on 2026-11-16 from `model_prices_and_context_window.json` of LiteLLM (MIT), version 1.108.4 on PyPI. Prices are
//! those of the vendors' usual service. Where long requests cost more for each token, the window ends where the
//! usual price does.

use fluffy_provider::Prices;

/// A model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownModel {
    name: &'static str,
    /// How many tokens it sees at the price below.
    pub(crate) context_window: u64,
    /// How many it answers with at most.
    pub(crate) max_output_tokens: u64,
    /// What they cost.
    pub(crate) prices: Prices,
}

/// The model of this name; a date or `latest` behind it makes no difference. Any other addition does: it may
/// be a dearer model.
pub(crate) fn find(model: &str) -> Option<&'static KnownModel> {
    let model = model.strip_prefix("models/").unwrap_or(model);
    let fits = |known: &&KnownModel| model.strip_prefix(known.name).is_some_and(is_dated);
    KNOWN.iter().filter(fits).max_by_key(|known| known.name.len())
}

/// Whether what stands behind a name only says when the model was made: `-20250929`, `-2025-08-07`, `-latest`.
fn is_dated(rest: &str) -> bool {
    if rest.is_empty() || rest == "-latest" {
        return true;
    }
    let Some(date) = rest.strip_prefix(['-', '@']) else { return false };
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    digits == 8 && date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// The prices are those of input, cached input, input put into a cache, and output, in millionths of a dollar for
/// a million tokens.
const fn known(
    name: &'static str,
    context_window: u64,
    max_output_tokens: u64,
    [input, cached, cache_written, output]: [u64; 4],
) -> KnownModel {
    let prices = Prices { input, cached, cache_written, output };
    KnownModel { name, context_window, max_output_tokens, prices }
}

const KNOWN: [KnownModel; 65] = [
    known("claude-fable-5", 1_000_000, 128_000, [10_000_000, 1_000_000, 12_500_000, 50_000_000]),
    known("claude-fable-5-1", 1_000_000, 128_000, [10_000_000, 250_000, 12_500_000, 50_000_000]),
    known("claude-haiku-4-5", 200_000, 64_000, [1_000_000, 100_000, 1_250_000, 5_000_000]),
    known("claude-haiku-5-5", 100_000, 100_000, [100_000, 10_000, 125_000, 500_000]),
    known("claude-opus-4-5", 200_000, 64_000, [5_000_000, 500_000, 6_250_000, 25_000_000]),
    known("claude-opus-4-6", 1_000_000, 128_000, [5_000_000, 500_000, 6_250_000, 25_000_000]),
    known("claude-opus-4-7", 1_000_000, 128_000, [5_000_000, 500_000, 6_250_000, 25_000_000]),
    known("claude-opus-4-8", 1_000_000, 128_000, [5_000_000, 500_000, 6_250_000, 25_000_000]),
    known("claude-opus-5", 1_000_000, 128_000, [5_000_000, 500_000, 6_250_000, 25_000_000]),
    known("claude-opus-5-5", 1_000_000, 128_000, [4_000_000, 200_000, 5_000_000, 20_000_000]),
    known("claude-sonnet-4-5", 200_000, 64_000, [3_000_000, 300_000, 3_750_000, 15_000_000]),
    known("claude-sonnet-4-6", 1_000_000, 128_000, [3_000_000, 300_000, 3_750_000, 15_000_000]),
    known("claude-sonnet-5", 1_000_000, 128_000, [2_000_000, 200_000, 2_500_000, 10_000_000]),
    known("claude-sonnet-5-5", 1_000_000, 128_000, [2_000_000, 100_000, 2_500_000, 10_000_000]),
    known("gemini-2.5-flash", 1_048_576, 65_536, [300_000, 30_000, 300_000, 2_500_000]),
    known("gemini-2.5-flash-lite", 1_048_576, 65_536, [100_000, 10_000, 100_000, 400_000]),
    known("gemini-2.5-pro", 200_000, 65_536, [1_250_000, 125_000, 1_250_000, 10_000_000]),
    known("gemini-3-flash-preview", 1_048_576, 65_536, [500_000, 50_000, 500_000, 3_000_000]),
    known("gemini-3.1-flash-lite", 1_048_576, 65_536, [250_000, 25_000, 250_000, 1_500_000]),
    known("gemini-3.1-pro-preview", 200_000, 65_536, [2_000_000, 200_000, 2_000_000, 12_000_000]),
    known("gemini-3.5-flash", 1_048_576, 65_536, [1_500_000, 150_000, 1_500_000, 9_000_000]),
    known("gemini-3.5-flash-lite", 1_048_576, 65_536, [300_000, 30_000, 300_000, 2_500_000]),
    known("gemini-3.6-flash", 1_048_576, 65_536, [750_000, 75_000, 750_000, 3_750_000]),
    known("gemini-3.7-flash", 1_048_576, 65_536, [750_000, 75_000, 750_000, 3_750_000]),
    known("gemini-3.8-flash", 1_048_576, 65_536, [750_000, 75_000, 750_000, 3_750_000]),
    known("gemini-4-argon", 1_048_576, 1_048_576, [2_000_000, 100_000, 2_000_000, 10_000_000]),
    known("gemini-flash-latest", 1_048_576, 65_536, [750_000, 75_000, 750_000, 3_750_000]),
    known("gemini-flash-lite-latest", 1_048_576, 65_536, [300_000, 30_000, 300_000, 2_500_000]),
    known("gemini-pro-latest", 200_000, 65_536, [2_000_000, 200_000, 2_000_000, 12_000_000]),
    known("gpt-4.1", 1_047_576, 32_768, [2_000_000, 500_000, 2_000_000, 8_000_000]),
    known("gpt-4.1-mini", 1_047_576, 32_768, [400_000, 100_000, 400_000, 1_600_000]),
    known("gpt-4.1-nano", 1_047_576, 32_768, [100_000, 25_000, 100_000, 400_000]),
    known("gpt-4o", 128_000, 16_384, [2_500_000, 1_250_000, 2_500_000, 10_000_000]),
    known("gpt-4o-mini", 128_000, 16_384, [150_000, 75_000, 150_000, 600_000]),
    known("gpt-5", 272_000, 128_000, [1_250_000, 125_000, 1_250_000, 10_000_000]),
    known("gpt-5-codex", 272_000, 128_000, [1_250_000, 125_000, 1_250_000, 10_000_000]),
    known("gpt-5-mini", 272_000, 128_000, [250_000, 25_000, 250_000, 2_000_000]),
    known("gpt-5-nano", 272_000, 128_000, [50_000, 5_000, 50_000, 400_000]),
    known("gpt-5-pro", 400_000, 272_000, [15_000_000, 15_000_000, 15_000_000, 120_000_000]),
    known("gpt-5.1", 272_000, 128_000, [1_250_000, 125_000, 1_250_000, 10_000_000]),
    known("gpt-5.1-codex", 400_000, 128_000, [1_250_000, 125_000, 1_250_000, 10_000_000]),
    known("gpt-5.1-codex-max", 400_000, 128_000, [1_250_000, 125_000, 1_250_000, 10_000_000]),
    known("gpt-5.1-codex-mini", 400_000, 128_000, [250_000, 25_000, 250_000, 2_000_000]),
    known("gpt-5.2", 272_000, 128_000, [1_750_000, 175_000, 1_750_000, 14_000_000]),
    known("gpt-5.2-codex", 272_000, 128_000, [1_750_000, 175_000, 1_750_000, 14_000_000]),
    known("gpt-5.2-pro", 272_000, 128_000, [21_000_000, 21_000_000, 21_000_000, 168_000_000]),
    known("gpt-5.3-codex", 272_000, 128_000, [1_750_000, 175_000, 1_750_000, 14_000_000]),
    known("gpt-5.4", 272_000, 128_000, [2_500_000, 250_000, 2_500_000, 15_000_000]),
    known("gpt-5.4-mini", 272_000, 128_000, [750_000, 75_000, 750_000, 4_500_000]),
    known("gpt-5.4-nano", 272_000, 128_000, [200_000, 20_000, 200_000, 1_250_000]),
    known("gpt-5.4-pro", 272_000, 128_000, [30_000_000, 30_000_000, 30_000_000, 180_000_000]),
    known("gpt-5.5", 272_000, 128_000, [5_000_000, 500_000, 5_000_000, 30_000_000]),
    known("gpt-5.5-pro", 272_000, 128_000, [30_000_000, 30_000_000, 30_000_000, 180_000_000]),
    known("gpt-5.6", 272_000, 128_000, [4_000_000, 400_000, 5_000_000, 20_000_000]),
    known("gpt-5.6-luna", 272_000, 128_000, [200_000, 20_000, 250_000, 1_200_000]),
    known("gpt-5.6-sol", 272_000, 128_000, [4_000_000, 400_000, 5_000_000, 20_000_000]),
    known("gpt-5.6-terra", 272_000, 128_000, [2_000_000, 200_000, 2_500_000, 12_000_000]),
    known("gpt-6-astra", 272_000, 128_000, [10_000_000, 1_000_000, 12_500_000, 50_000_000]),
    known("gpt-6-luna", 272_000, 128_000, [100_000, 10_000, 125_000, 500_000]),
    known("gpt-6-sol", 272_000, 128_000, [2_000_000, 200_000, 2_500_000, 10_000_000]),
    known("gpt-6.1-sol", 272_000, 128_000, [2_000_000, 100_000, 2_500_000, 10_000_000]),
    known("o3", 200_000, 100_000, [2_000_000, 500_000, 2_000_000, 8_000_000]),
    known("o3-mini", 200_000, 100_000, [1_100_000, 550_000, 1_100_000, 4_400_000]),
    known("o3-pro", 200_000, 100_000, [20_000_000, 20_000_000, 20_000_000, 80_000_000]),
    known("o4-mini", 200_000, 100_000, [1_100_000, 275_000, 1_100_000, 4_400_000]),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn name(model: &str) -> Option<&'static str> {
        find(model).map(|known| known.name)
    }

    #[test]
    fn a_date_behind_a_name_makes_no_difference() {
        assert_eq!(name("claude-sonnet-4-5-20250929"), Some("claude-sonnet-4-5"));
        assert_eq!(name("claude-sonnet-4-5@20250929"), Some("claude-sonnet-4-5"));
        assert_eq!(name("claude-sonnet-4-5"), Some("claude-sonnet-4-5"));
        assert_eq!(name("claude-opus-5-latest"), Some("claude-opus-5"));
        assert_eq!(name("gpt-5-mini-2025-08-07"), Some("gpt-5-mini"));
        assert_eq!(name("gpt-5-2025-08-07"), Some("gpt-5"));
        assert_eq!(name("models/gemini-2.5-pro"), Some("gemini-2.5-pro"));
    }

    #[test]
    fn another_model_is_not_taken_for_a_cheaper_one_whose_name_begins_the_same() {
        for unknown in [
            "gpt-5-turbo",
            "gpt-5.9",
            "gpt-5-",
            "gpt-50",
            "claude-opus-5-ultra",
            "o3-2",
            "",
            "llama3.2",
        ] {
            assert_eq!(name(unknown), None, "{unknown}");
        }
        assert_eq!(name("claude-opus-5-5"), Some("claude-opus-5-5"));
    }

    #[test]
    fn prices_are_in_millionths_of_a_dollar_for_a_million_tokens() {
        let sonnet = find("claude-sonnet-4-5").unwrap();
        let expected = Prices {
            input: 3_000_000,
            cached: 300_000,
            cache_written: 3_750_000,
            output: 15_000_000,
        };
        assert_eq!(sonnet.prices, expected);
        assert_eq!((sonnet.context_window, sonnet.max_output_tokens), (200_000, 64_000));
    }

    #[test]
    fn the_table_makes_sense() {
        for pair in KNOWN.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} is out of order", pair[1].name);
        }
        for model in KNOWN {
            let Prices { input, cached, cache_written, output } = model.prices;
            assert!(
                0 < cached && cached <= input && input <= cache_written && input < output,
                "{}",
                model.name
            );
            assert!(model.max_output_tokens <= model.context_window, "{}", model.name);
        }
    }
}
