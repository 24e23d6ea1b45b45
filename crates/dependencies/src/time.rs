//! Reads the times that registries tell.

/// A time as `2024-03-25T16:10:03.123Z`, in milliseconds since the epoch; fractions are left out, and a zone other than UTC
/// is not known here.
pub(crate) fn parse_utc(text: &str) -> Option<u64> {
    let (date, time) = text.trim().split_once(['T', ' '])?;
    let time = time.strip_suffix('Z').or_else(|| time.strip_suffix("+00:00")).unwrap_or(time);
    let mut date = date.split('-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let clock = time.split('.').next()?;
    let mut clock = clock.split(':').map(str::parse::<u64>);
    let (hour, minute, second) = (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?);
    let fits = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !fits {
        return None;
    }
    // Days since the epoch, with years that begin in March.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_nonsense_is_not() {
        assert_eq!(parse_utc("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_utc("2024-03-25T16:10:03.123Z"), Some(1_711_383_003_000));
        assert_eq!(parse_utc("2000-02-29 23:59:59+00:00"), Some(951_868_799_000));
        for text in ["", "yesterday", "2024-13-01T00:00:00Z", "2024-01-01", "0000-01-01T00:00:00Z"]
        {
            assert_eq!(parse_utc(text), None, "{text}");
        }
    }
}
