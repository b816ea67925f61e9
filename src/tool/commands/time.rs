//! A point in time as people write it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Error, Result};

/// The time, in seconds since the epoch, that a person writes.
pub fn parse_time(text: &str) -> Result<u64> {
    parse_time_at(text, before(Duration::ZERO))
}

fn parse_time_at(text: &str, now: u64) -> Result<u64> {
    const DAY: u64 = 86_400;
    let today = now.saturating_sub(now % DAY);
    if let Ok(ago) = humantime::parse_duration(text) {
        return Ok(now.saturating_sub(ago.as_secs()));
    }
    let rest = match (text, text.len()) {
        ("today", _) => return Ok(today),
        ("yesterday", _) => return Ok(today.saturating_sub(DAY)),
        (_, 10) => " 00:00:00",
        (_, 16) => ":00",
        _ => "",
    };
    let time = humantime::parse_rfc3339_weak(&format!("{text}{rest}")).map_err(|_| {
        Error::msg(
            "write how long ago, such as 1h or 2days, today, yesterday, or a time in UTC, such as \
             2026-11-21 or \"2026-11-21 10:00\"",
        )
    })?;
    Ok(time.duration_since(UNIX_EPOCH)?.as_secs())
}

/// A time as it is shown: RFC 3339, in UTC.
pub fn date(time: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(time));
    humantime::format_rfc3339_seconds(time.unwrap_or(UNIX_EPOCH)).to_string()
}

/// The time so long ago, in seconds since the epoch.
pub fn before(ago: Duration) -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    now.saturating_sub(ago).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_people_do() {
        const NOW: u64 = 1_795_219_200 + 13 * 3600; // 2026-11-21 13:00
        let cases = [
            ("1h", Some(NOW - 3600)),
            ("2days 1min", Some(NOW - 2 * 86_400 - 60)),
            ("today", Some(1_795_219_200)),
            ("yesterday", Some(1_795_132_800)),
            ("2026-11-21", Some(1_795_219_200)),
            ("2026-11-21 10:00", Some(1_795_255_200)),
            ("2026-11-21T10:00", Some(1_795_255_200)),
            ("2026-11-21 10:00:30", Some(1_795_255_230)),
            ("2026-11-21T10:00:30Z", Some(1_795_255_230)),
            ("tomorrow", None),
            ("21.11.2026", None),
            ("2026-13-21", None),
            ("10:00", None),
            ("1", None),
            ("", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse_time_at(text, NOW).ok(), want, "{text}");
        }
    }
}
