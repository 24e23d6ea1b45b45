//! Times as people write and read them, in UTC.

use fluffy_base::Span;

const DAY_MS: u64 = 86_400_000;

/// `2026-11-15 22:02:40`.
pub(crate) fn show(ms: u64) -> String {
    let (year, month, day) = date_of(ms / DAY_MS);
    let second = ms % DAY_MS / 1000;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// A time as typed: milliseconds, a date with or without a time of day, or how long ago (`10m`).
pub(crate) fn parse(text: &str, now_ms: u64) -> Option<u64> {
    if let Ok(ms) = text.parse::<u64>() {
        return Some(ms);
    }
    if let Ok(span) = text.parse::<Span>() {
        return Some(now_ms.saturating_sub(span.ms()));
    }
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = match numbers(time, ':') {
        Some(three) => three,
        None => {
            let [hour, minute] = numbers(time, ':')?;
            [hour, minute, 0]
        }
    };
    let valid = (1970..=9999).contains(&year) && hour < 24 && minute < 60 && second < 60;
    let days = days_of(year, month, day)?;
    valid.then(|| days * DAY_MS + (hour * 3600 + minute * 60 + second) * 1000)
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[u64; N]> {
    let parts: Vec<u64> = text
        .split(separator)
        .map(|part| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok())?)
        .collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// Days since 1970-01-01; `None` for a day that the calendar does not have.
fn days_of(year: u64, month: u64, day: u64) -> Option<u64> {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 => 28 + u64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) || year < 1970 {
        return None;
    }
    // Counted from March, so that the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    days.checked_sub(719_468)
}

fn date_of(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_and_read_back() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400_000, "2000-02-29 00:00:00"),
            (1_794_780_160_000, "2026-11-15 22:02:40"),
        ] {
            assert_eq!(show(ms), text);
            assert_eq!(parse(text, 0), Some(ms));
        }
        assert_eq!(parse("2026-11-15T22:02:40Z", 0), Some(1_794_780_160_000));
        assert_eq!(parse("2026-11-15T22:02", 0), Some(1_794_780_120_000));
        assert_eq!(parse("2026-11-15", 0), Some(1_794_700_800_000));
    }

    #[test]
    fn every_day_of_four_centuries_survives_the_round_trip() {
        for days in 0..146_097 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), Some(days));
        }
    }

    #[test]
    fn how_long_ago_counts_from_now() {
        assert_eq!(parse("10m", 1_000_000), Some(400_000));
        assert_eq!(parse("2h", 1), Some(0));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in
            ["", "yesterday", "2026-02-29", "2026-13-01", "2026-11-15T25:00", "1969-01-01", "-1"]
        {
            assert_eq!(parse(text, 0), None, "{text}");
        }
    }
}
