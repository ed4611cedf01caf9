//! `lockstepd journal info`: what is in a journal, without stepping a World.

use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::Which;
use crate::cli::output::Output;
use crate::cli::recorded::{definition, read_failed};
use crate::journal::reader::{Journal, JournalReader};
use crate::journal::record::{CloseReason, Record, SessionState};

/// What is in the journals: run, ruleset, ticks, wall times, segments, sessions, size
#[derive(Args)]
#[command(after_help = "\
Examples:
  lockstepd journal info data
  lockstepd journal info data/town/run-000002 --json | jq .bytes_per_hour")]
pub(super) struct InfoArguments {
    #[command(flatten)]
    which: Which,
}

#[derive(Serialize)]
struct Info {
    journal: String,
    location: String,
    run: String,
    ruleset: u32,
    ruleset_hash: String,
    tick_rate: u16,
    first_tick: u64,
    next_tick: u64,
    ticks: u64,
    /// At the tick rate.
    seconds: f64,
    /// Wall clock of the first and the last keyframe, ms.
    first_unix_ms: u64,
    last_unix_ms: u64,
    keyframes: u64,
    commands: u64,
    /// That were ever there, in what is left of the run.
    sessions: u64,
    /// Open at the end.
    sessions_open: u64,
    bytes: u64,
    /// If they had not been packed.
    raw_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_hour: Option<u64>,
    /// `open`, `stopped`, `rotated`, `run ended` or `torn`.
    end: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    torn: Option<String>,
    segments: Vec<SegmentInfo>,
}

#[derive(Serialize)]
struct SegmentInfo {
    file: String,
    number: u64,
    first_tick: u64,
    packed: bool,
    bytes: u64,
    raw_bytes: u64,
    keyframes: u64,
}

/// Reads each journal once.
///
/// # Errors
/// Nothing there; damage; IO.
pub(super) fn run(arguments: &InfoArguments) -> anyhow::Result<ExitCode> {
    let mut output = Output::stdout();
    for journal in arguments.which.journals()? {
        let info = Info::read(&journal)?;
        if arguments.which.json {
            output.json(&info)?;
        } else {
            output.line(info.text())?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

impl Info {
    fn read(journal: &Journal) -> anyhow::Result<Self> {
        let mut reader = journal.read().map_err(read_failed)?;
        let header = reader.header().clone();
        let mut info = Self {
            journal: journal.path.display().to_string(),
            location: definition(&reader)?.name().to_owned(),
            run: header.run.iter().map(|byte| format!("{byte:02x}")).collect(),
            ruleset: header.ruleset,
            ruleset_hash: format!("{:016x}", header.ruleset_hash),
            tick_rate: header.tick_rate,
            first_tick: header.first_tick,
            next_tick: header.first_tick,
            ticks: 0,
            seconds: 0.0,
            first_unix_ms: 0,
            last_unix_ms: 0,
            keyframes: 0,
            commands: 0,
            sessions: 0,
            sessions_open: 0,
            bytes: 0,
            raw_bytes: 0,
            bytes_per_hour: None,
            end: "open",
            torn: None,
            segments: vec![SegmentInfo::of(&reader)],
        };
        let (mut known, mut open) = (BTreeSet::new(), BTreeSet::new());
        while let Some(record) = reader.next().map_err(read_failed)? {
            let last = info.segments.last().map_or(0, |segment| segment.number);
            if reader.header().segment != last {
                info.segments.push(SegmentInfo::of(&reader));
            }
            info.count(&record);
            match &record {
                Record::Sessions(sessions) => open = sessions.sessions.iter().filter_map(is_open).collect(),
                Record::Session(session) => {
                    open.remove(&session.session);
                    open.extend(is_open(session));
                }
                _ => {}
            }
            known.extend(open.iter().copied());
        }
        (info.sessions, info.sessions_open) = (known.len() as u64, open.len() as u64);
        if let Some(torn) = reader.torn() {
            info.end = "torn";
            let (bytes, offset, what) = (torn.bytes, torn.at.offset, &torn.at.what);
            info.torn = Some(format!("{bytes} bytes from offset {offset} on ({what})"));
        }
        for (file, segment) in journal.files().zip(&mut info.segments) {
            segment.file = file.display().to_string();
            // It may have been packed in the meantime.
            segment.bytes = fs::metadata(file).map_or(segment.raw_bytes, |found| found.len());
        }
        info.bytes = info.segments.iter().map(|segment| segment.bytes).sum();
        info.raw_bytes = info.segments.iter().map(|segment| segment.raw_bytes).sum();
        info.ticks = info.next_tick - info.first_tick;
        info.seconds = info.ticks as f64 / f64::from(info.tick_rate);
        let hour = 3_600 * u64::from(info.tick_rate);
        let per_hour = u128::from(info.bytes) * u128::from(hour);
        info.bytes_per_hour = u64::try_from(per_hour.checked_div(info.ticks.into()).unwrap_or(0)).ok();
        Ok(info)
    }

    fn count(&mut self, record: &Record) {
        self.end = "open";
        match record {
            Record::Keyframe(keyframe) => {
                if self.keyframes == 0 {
                    self.first_unix_ms = keyframe.unix_ms;
                }
                self.last_unix_ms = keyframe.unix_ms;
                self.keyframes += 1;
                if let Some(segment) = self.segments.last_mut() {
                    segment.keyframes += 1;
                }
            }
            Record::Turn(turn) => {
                self.next_tick = turn.tick + 1;
                self.commands += turn.commands.len() as u64;
            }
            Record::Close(close) => {
                self.end = match close.reason {
                    CloseReason::Rotated => "rotated",
                    CloseReason::Stopped => "stopped",
                    CloseReason::RunEnded => "run ended",
                };
            }
            _ => {}
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{}\n  location {}, run {}\n  ruleset {} ({}), {} Hz",
            self.journal, self.location, self.run, self.ruleset, self.ruleset_hash, self.tick_rate
        );
        text += &format!(
            "\n  ticks {} to {}: {} ticks, {:.1} hours",
            self.first_tick,
            self.next_tick.saturating_sub(1),
            self.ticks,
            self.seconds / 3_600.0
        );
        text += &format!(
            "\n  keyframes {} from {} to {}",
            self.keyframes,
            wall_time(self.first_unix_ms),
            wall_time(self.last_unix_ms)
        );
        text += &format!(
            "\n  commands {}, sessions {} ({} open at the end)",
            self.commands, self.sessions, self.sessions_open
        );
        let per_hour = self.bytes_per_hour.unwrap_or(0);
        text += &format!(
            "\n  {} on the disk, {} unpacked; {} an hour of ticks",
            size(self.bytes),
            size(self.raw_bytes),
            size(per_hour)
        );
        text += &format!("\n  end: {}", self.torn.as_deref().unwrap_or(self.end));
        for segment in &self.segments {
            let packed = if segment.packed { ", packed" } else { "" };
            text += &format!(
                "\n  segment {} from tick {}: {} ({} unpacked{packed}), {} keyframes",
                segment.number,
                segment.first_tick,
                size(segment.bytes),
                size(segment.raw_bytes),
                segment.keyframes
            );
        }
        text
    }
}

impl SegmentInfo {
    fn of(reader: &JournalReader) -> Self {
        let (header, segment) = (reader.header(), reader.segment());
        Self {
            file: segment.path().display().to_string(),
            number: header.segment,
            first_tick: header.first_tick,
            packed: segment.is_packed(),
            bytes: 0,
            raw_bytes: segment.end(),
            keyframes: 0,
        }
    }
}

fn is_open(session: &crate::journal::record::Session) -> Option<u64> {
    (session.state == SessionState::Open).then_some(session.session)
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// `2026-11-30T06:45:15Z`. Source of the calendar: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// `civil_from_days`.
pub(super) fn wall_time(unix_ms: u64) -> String {
    let seconds = unix_ms / 1_000;
    let (days, of_day) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_times_are_dates() {
        let check = |unix: u64, expected: &str| assert_eq!(wall_time(unix * 1_000), expected);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_399, "2000-02-28T23:59:59Z");
        check(951_782_400, "2000-02-29T00:00:00Z");
        check(951_868_800, "2000-03-01T00:00:00Z");
        check(1_700_000_000, "2023-11-14T22:13:20Z");
        check(4_107_542_400, "2100-03-01T00:00:00Z");
    }
}
