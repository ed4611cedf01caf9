//! The journal in process: bytes, threads, and starts after everything that a disk can do.

mod damage;
mod faulty;
mod flips;
mod give_up;
mod packing;
mod records;
mod recovery;
mod retention;
mod rotation;
mod segment;
mod thread;
mod yard;

use std::fs;
use std::path::Path;

use sim::bounded::{List, Text};
use sim::{CharacterId, Command};
use tempfile::TempDir;

use super::record::{Session, SessionState, token_hash};

/// A temporary folder, in memory where the system has such a place: here thousands of starts sync dozens of files each,
/// and what syncing is good for is tried with the real daemon.
fn memory_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temporary folder")
}

/// A session as the location would record it.
fn session(number: u64, characters: &[u32], state: SessionState) -> Session {
    Session {
        session: number,
        subject: Text::default(),
        name: Text::cut(&format!("Player {number}")),
        role: protocol::message::Role::Player,
        characters: characters
            .iter()
            .map(|&id| CharacterId(id))
            .collect::<Vec<_>>()
            .try_into_list(),
        token_hash: token_hash(&[number as u8; 16]),
        old_token_hash: None,
        nonce: None,
        state,
    }
}

fn stop(character: u32) -> Command {
    Command::Stop {
        character: CharacterId(character),
    }
}

/// A list that a test knows to be short enough.
trait TryIntoList<T, const MAX: usize> {
    fn try_into_list(self) -> List<T, MAX>;
}

impl<T, const MAX: usize> TryIntoList<T, MAX> for Vec<T> {
    fn try_into_list(self) -> List<T, MAX> {
        List::new(self).expect("a test's list is short")
    }
}

/// Compares with a golden file, or rewrites it if `BLESS` is set.
fn check_golden(path: &Path, actual: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, actual).expect("the golden file can be written");
    }
    let golden = fs::read_to_string(path).expect("the golden file is there; BLESS=1 makes it");
    assert_eq!(actual, golden, "{} (BLESS=1 rewrites it)", path.display());
}
