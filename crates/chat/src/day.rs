//! Days of the calendar.

const DAY_MS: u64 = 86_400_000;

/// The day of a time in UTC, as `YYYY-MM-DD`, so many days later.
pub fn day_of(ms: u64, later: i64) -> String {
    // Days since the first of March of the year 0, in eras of 400 years (Howard Hinnant's `civil_from_days`).
    let days = i64::try_from(ms / DAY_MS).unwrap_or(0).saturating_add(later) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day_of(0, 0), "1970-01-01");
        assert_eq!(day_of(0, -1), "1969-12-31");
        assert_eq!(day_of(1_709_164_800_000, 0), "2024-02-29");
        assert_eq!(day_of(1_709_164_800_000, 1), "2024-03-01");
        assert_eq!(day_of(951_782_400_000, 0), "2000-02-29");
        assert!(!day_of(u64::MAX, 1).is_empty());
    }
}
