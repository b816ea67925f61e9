//! A point in time as people write it, in seconds since the epoch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Error, Result};
use tz::{DateTime, TimeZone};

/// A time that a person writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Ago(Duration),
    /// So many whole days ago, at the beginning of that day.
    Day(u64),
    /// What a clock shows, as if it showed UTC.
    Clock(u64),
}

impl When {
    pub fn parse(text: &str) -> Result<Self> {
        if let Ok(ago) = humantime::parse_duration(text) {
            return Ok(Self::Ago(ago));
        }
        let rest = match (text, text.len()) {
            ("today", _) => return Ok(Self::Day(0)),
            ("yesterday", _) => return Ok(Self::Day(1)),
            (_, 10) => " 00:00:00",
            (_, 16) => ":00",
            _ => "",
        };
        let time = humantime::parse_rfc3339_weak(&format!("{text}{rest}")).map_err(|_| {
            Error::msg(
                "write how long ago, such as 1h or 2days, today, yesterday, or a time, such as \
                 2026-11-21 or \"2026-11-21 10:00\"",
            )
        })?;
        Ok(Self::Clock(time.duration_since(UNIX_EPOCH)?.as_secs()))
    }

    pub fn in_zone(self, zone: &TimeZone) -> u64 {
        self.at(before(Duration::ZERO), zone)
    }

    fn at(self, now: u64, zone: &TimeZone) -> u64 {
        const DAY: u64 = 86_400;
        let clock = match self {
            Self::Ago(ago) => return now.saturating_sub(ago.as_secs()),
            Self::Day(days) => {
                let shown = now.saturating_add_signed(offset(zone, now));
                (shown / DAY).saturating_sub(days).saturating_mul(DAY)
            }
            Self::Clock(clock) => clock,
        };
        // Wrong by an hour at most, in the hours around a change of summer time.
        clock.saturating_add_signed(offset(zone, clock).saturating_neg())
    }
}

/// The time zone of `TZ`, else of this host.
pub fn local_zone() -> Result<TimeZone> {
    let zone = match std::env::var("TZ") {
        Ok(name) => TimeZone::from_posix_tz(&name),
        Err(_) => TimeZone::local(),
    };
    zone.context("reading this host's time zone")
}

/// Seconds east of UTC at this time.
fn offset(zone: &TimeZone, time: u64) -> i64 {
    let kind = zone.find_local_time_type(time.try_into().unwrap_or(i64::MAX));
    kind.map_or(0, |kind| kind.ut_offset().into())
}

/// RFC 3339, in this time zone.
pub fn date_in(zone: &TimeZone, time: u64) -> String {
    let seconds = time.try_into().unwrap_or(i64::MAX);
    match DateTime::from_timespec(seconds, 0, zone.as_ref()) {
        Ok(shown) => shown.to_string().replace(".000000000", ""),
        Err(_) => date(time),
    }
}

/// A time as it is shown: RFC 3339, in UTC.
pub fn date(time: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_secs(time));
    humantime::format_rfc3339_seconds(time.unwrap_or(UNIX_EPOCH)).to_string()
}

/// The time so long ago.
pub fn before(ago: Duration) -> u64 {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    now.saturating_sub(ago).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_people_do() {
        const NOW: u64 = 1_795_219_200 + 23 * 3600; // 2026-11-21 23:00 in UTC, and the next day in Berlin
        let berlin = TimeZone::from_posix_tz("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let utc = TimeZone::utc();
        let cases = [
            ("1h", Some((NOW - 3600, NOW - 3600))),
            (
                "2days 1min",
                Some((NOW - 2 * 86_400 - 60, NOW - 2 * 86_400 - 60)),
            ),
            ("today", Some((1_795_219_200, 1_795_305_600 - 3600))),
            ("yesterday", Some((1_795_132_800, 1_795_219_200 - 3600))),
            ("2026-11-21", Some((1_795_219_200, 1_795_215_600))),
            ("2026-07-01 10:00", Some((1_782_900_000, 1_782_892_800))),
            ("2026-11-21T10:00", Some((1_795_255_200, 1_795_251_600))),
            ("2026-11-21T10:00:30Z", Some((1_795_255_230, 1_795_251_630))),
            ("tomorrow", None),
            ("21.11.2026", None),
            ("2026-13-21", None),
            ("10:00", None),
            ("1", None),
            ("", None),
        ];
        for (text, want) in cases {
            let when = When::parse(text).ok();
            let times = when.map(|when| (when.at(NOW, &utc), when.at(NOW, &berlin)));
            assert_eq!(times, want, "{text}");
        }
        assert_eq!(date_in(&berlin, 1_782_892_800), "2026-07-01T10:00:00+02:00");
        assert_eq!(date_in(&utc, 1_782_892_800), "2026-07-01T08:00:00Z");
    }
}
