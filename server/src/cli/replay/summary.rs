//! What a replay came to, for people and for programs.

use serde::Serialize;

use super::branch::Branch;
use super::verify::Found;

/// What has been replayed.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) journal: String,
    pub(super) location: String,
    pub(super) run: String,
    pub(super) first_tick: u64,
    /// The step that comes next.
    pub(super) next_tick: u64,
    pub(super) ticks: u64,
    /// Recorded of the last tick; missing where a difference ended the verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    pub(super) verified: bool,
    pub(super) threads: usize,
    pub(super) seconds: f64,
    pub(super) ticks_per_second: f64,
    pub(super) times_real_time: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) torn: Option<String>,
    /// The first tick at which the recording and the rules disagree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) difference: Option<Found>,
    /// Without verification: the first tick at which what was stepped for printing has another digest than recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<Branch>,
}

impl Summary {
    /// Whether the recording is what its commands give, as far as was looked.
    pub(super) fn is_good(&self) -> bool {
        self.difference.is_none() && self.parted.is_none()
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{}: location {}, run {}: ", self.journal, self.location, self.run);
        match self.ticks {
            0 => text += "no ticks",
            _ => text += &format!("ticks {} to {}", self.first_tick, self.next_tick - 1),
        }
        if let Some(digest) = &self.digest {
            text += &format!(", digest {digest}");
        }
        if self.verified {
            text += &format!(
                "\n{} ticks in {:.3} s: {:.0} ticks per second, {:.0} times real time",
                self.ticks, self.seconds, self.ticks_per_second, self.times_real_time
            );
        }
        if let Some(torn) = &self.torn {
            text += &format!("\ntorn end: {torn}");
        }
        match (&self.difference, self.parted) {
            (Some(found), _) => text += &format!("\n{}", found.text()),
            (None, Some(tick)) => {
                text += &format!(
                    "\ntick {tick}: what is printed from there on is computed, and not what was recorded"
                );
            }
            (None, None) if self.verified => text += "\nevery digest and outcome is the recorded one",
            (None, None) => {}
        }
        if let Some(branch) = &self.branch {
            text += &format!("\n{}", branch.text());
        }
        text
    }
}
