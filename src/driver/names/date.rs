//! A time for people.

use std::time::{Duration, UNIX_EPOCH};

/// The time that is `seconds` after the beginning of 1970: RFC 3339, in UTC. That has no year after 9999, and the
/// number may be larger: somebody else has written it to a disk or a log.
pub fn date(seconds: u64) -> String {
    const LAST: u64 = 253_402_300_799;
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds.min(LAST)));
    humantime::format_rfc3339_seconds(time.unwrap_or(UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_later_than_any_date_has_the_last_one() {
        assert_eq!(date(253_402_300_800), "9999-12-31T23:59:59Z");
        assert_eq!(date(u64::MAX), "9999-12-31T23:59:59Z");
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
    }
}
