//! Intervals of time partitions on the UTC calendar; no time zone, so no daylight saving.

use std::{fmt, str::FromStr};

/// Microseconds since 1970-01-01 UTC, Postgres's resolution.
pub(super) type Micros = i64;

const SECOND: Micros = 1_000_000;
const HOUR: Micros = 3_600 * SECOND;
const DAY: Micros = 24 * HOUR;

/// Length of a time partition; the choices are pgQueue's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionInterval {
    /// `1 hour`
    Hour,
    /// `6 hours`, from midnight
    SixHours,
    /// `12 hours`, from midnight
    TwelveHours,
    /// `1 day`
    Day,
    /// `1 week`, from Monday
    Week,
    /// `1 month`, from the first
    Month,
}

impl PartitionInterval {
    /// All, with the names that they are configured by.
    const NAMES: [(PartitionInterval, &'static str); 6] = [
        (PartitionInterval::Hour, "1 hour"),
        (PartitionInterval::SixHours, "6 hours"),
        (PartitionInterval::TwelveHours, "12 hours"),
        (PartitionInterval::Day, "1 day"),
        (PartitionInterval::Week, "1 week"),
        (PartitionInterval::Month, "1 month"),
    ];

    /// Start of the interval that holds `time`.
    pub(super) fn start_of(self, time: Micros) -> Micros {
        let aligned = |length: Micros, origin: Micros| time - (time - origin).rem_euclid(length);
        match self {
            PartitionInterval::Hour => aligned(HOUR, 0),
            PartitionInterval::SixHours => aligned(6 * HOUR, 0),
            PartitionInterval::TwelveHours => aligned(12 * HOUR, 0),
            PartitionInterval::Day => aligned(DAY, 0),
            // 1970-01-01 was a Thursday.
            PartitionInterval::Week => aligned(7 * DAY, 4 * DAY),
            PartitionInterval::Month => {
                let (year, month, _) = civil_from_days(time.div_euclid(DAY));
                days_from_civil(year, month, 1) * DAY
            }
        }
    }

    /// Start of the interval after the one that holds `time`.
    pub(super) fn next_after(self, time: Micros) -> Micros {
        let start = self.start_of(time);
        match self {
            PartitionInterval::Hour => start + HOUR,
            PartitionInterval::SixHours => start + 6 * HOUR,
            PartitionInterval::TwelveHours => start + 12 * HOUR,
            PartitionInterval::Day => start + DAY,
            PartitionInterval::Week => start + 7 * DAY,
            PartitionInterval::Month => self.start_of(start + 31 * DAY),
        }
    }
}

impl fmt::Display for PartitionInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(interval, _)| interval == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for PartitionInterval {
    type Err = String;

    fn from_str(text: &str) -> Result<PartitionInterval, String> {
        let found = Self::NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(interval, _)| *interval).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, name)| *name).collect();
            format!("must be one of: {}", names.join(", "))
        })
    }
}

/// As pg_partman 5 names partitions: `YYYYMMDD`, with `_HH24MISS` if not from midnight.
pub(super) fn name_suffix(time: Micros) -> String {
    let (year, month, day) = civil_from_days(time.div_euclid(DAY));
    let second = time.rem_euclid(DAY) / SECOND;
    let date = format!("{year:04}{month:02}{day:02}");
    if second == 0 {
        return date;
    }
    format!("{date}_{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// A literal that Postgres reads the same in every time zone.
pub(super) fn timestamptz(time: Micros) -> String {
    let (year, month, day) = civil_from_days(time.div_euclid(DAY));
    let rest = time.rem_euclid(DAY);
    let second = rest / SECOND;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:06}+00",
        second / 3600,
        second / 60 % 60,
        second % 60,
        rest % SECOND
    )
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar. Years are counted from
/// March, so that the leap day is the last of a year, in eras of 400 years, which are all alike.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse: year, month 1..=12, day 1..=31.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(year: i64, month: i64, day: i64, hour: i64) -> Micros {
        days_from_civil(year, month, day) * DAY + hour * HOUR
    }

    #[test]
    fn dates_and_day_numbers_agree_over_four_centuries() {
        assert_eq!(days_from_civil(1970, 1, 1), 0);
        assert_eq!(days_from_civil(2000, 3, 1), 11_017);
        let mut previous = (1869, 12, 31);
        for days in days_from_civil(1870, 1, 1)..days_from_civil(2270, 1, 1) {
            let date = civil_from_days(days);
            assert_eq!(days_from_civil(date.0, date.1, date.2), days);
            assert!(date > previous && date.2 <= 31);
            previous = date;
        }
    }

    #[test]
    fn months_end_where_the_calendar_says() {
        let month = PartitionInterval::Month;
        assert_eq!(month.start_of(at(2024, 2, 29, 23)), at(2024, 2, 1, 0));
        assert_eq!(month.next_after(at(2024, 2, 29, 23)), at(2024, 3, 1, 0));
        assert_eq!(month.next_after(at(2023, 2, 28, 0)), at(2023, 3, 1, 0));
        assert_eq!(month.next_after(at(2023, 12, 31, 23)), at(2024, 1, 1, 0));
        assert_eq!(month.next_after(at(2024, 1, 1, 0)), at(2024, 2, 1, 0));
    }

    #[test]
    fn other_intervals_are_aligned_to_midnight_and_monday() {
        let time = at(2026, 11, 29, 14); // a Sunday
        assert_eq!(PartitionInterval::Hour.start_of(time + 1), time);
        assert_eq!(PartitionInterval::SixHours.start_of(time), at(2026, 11, 29, 12));
        assert_eq!(PartitionInterval::TwelveHours.next_after(time), at(2026, 11, 30, 0));
        assert_eq!(PartitionInterval::Day.start_of(time), at(2026, 11, 29, 0));
        assert_eq!(PartitionInterval::Week.start_of(time), at(2026, 11, 23, 0));
        assert_eq!(PartitionInterval::Week.next_after(time), at(2026, 11, 30, 0));
        assert_eq!(PartitionInterval::Day.start_of(-1), -DAY);
    }

    #[test]
    fn names_are_pg_partmans_and_literals_are_utc() {
        assert_eq!(name_suffix(at(2026, 1, 2, 0)), "20260102");
        assert_eq!(name_suffix(at(2026, 1, 2, 18)), "20260102_180000");
        assert_eq!(timestamptz(at(2026, 1, 2, 18) + 7), "2026-01-02 18:00:00.000007+00");
    }

    #[test]
    fn every_interval_is_configured_by_its_name() {
        for (interval, name) in PartitionInterval::NAMES {
            assert_eq!(name.parse(), Ok(interval));
            assert_eq!(interval.to_string(), name);
        }
        assert!("2 days".parse::<PartitionInterval>().is_err());
    }
}
