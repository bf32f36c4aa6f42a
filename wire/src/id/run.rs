//! The run id: names a launch of the system, and its directory.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

/// Identity of a run, safe as the name of a directory: 1 to 128 of `[A-Za-z0-9._-]`, but not `.` or
/// `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

/// Why a text is no run id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunIdError {
    /// Empty, or longer than 128 bytes.
    #[error("a run id has 1 to {} characters, not {found}", RunId::MAX_LEN)]
    Length {
        /// Bytes of the text.
        found: usize,
    },
    /// A character that a directory's name should not hold.
    #[error("only letters, digits, `.`, `_` and `-` may stand in a run id, unlike byte {at}")]
    Character {
        /// Offset of the first such byte.
        at: usize,
    },
    /// `.` or `..`, which name other directories.
    #[error("`.` and `..` are no run ids")]
    Dots,
}

impl RunId {
    /// Most bytes of a run id.
    pub const MAX_LEN: usize = 128;

    /// The id of a run begun now by this process: `YYYYmmdd-HHMMSS-<pid>-<8 hex>`, in UTC. A time
    /// before 1970 counts as 1970.
    pub fn new(now: SystemTime, pid: u32, random: u32) -> Self {
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (year, month, day) = civil_date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        Self(format!(
            "{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{pid}-{random:08x}"
        ))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RunId {
    type Error = RunIdError;

    fn try_from(text: String) -> Result<Self, RunIdError> {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        if text.is_empty() || text.len() > Self::MAX_LEN {
            return Err(RunIdError::Length { found: text.len() });
        }
        if let Some(at) = text.bytes().position(|byte| !allowed(&byte)) {
            return Err(RunIdError::Character { at });
        }
        if matches!(text.as_str(), "." | "..") {
            return Err(RunIdError::Dots);
        }
        Ok(Self(text))
    }
}

impl FromStr for RunId {
    type Err = RunIdError;

    fn from_str(text: &str) -> Result<Self, RunIdError> {
        text.to_owned().try_into()
    }
}

impl AsRef<str> for RunId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Year, month and day of the proleptic Gregorian calendar, for days since 1970-01-01.
///
/// Years are counted from 1 March, so that the leap day ends a year: eras of 400 years have 146,097
/// days.
fn civil_date(days: u64) -> (u64, u64, u64) {
    const DAYS_FROM_YEAR_0_TO_1970: u64 = 719_468;
    let days = days + DAYS_FROM_YEAR_0_TO_1970;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}
