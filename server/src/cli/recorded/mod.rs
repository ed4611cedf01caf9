//! What the commands that look into journals share: finding them, their definition, their commands in a form that can be
//! run again.

#[cfg(test)]
pub(super) mod changed;
mod form;

use std::io::ErrorKind;
use std::path::Path;

use sim::Definition;

pub(super) use self::form::command_form;
use crate::exit::{Status, WithStatus, bad_input};
use crate::journal::playback;
use crate::journal::reader::{self, Journal, JournalReader, ReadError};
use crate::journal::record::{Keyframe, Record};

/// The journals that a path names; at least one.
///
/// # Errors
/// Bad input: none, or neither a file nor a folder, or a file of which a location or run is wanted; damage; IO.
pub(super) fn find(path: &Path, location: Option<&str>, run: Option<u64>) -> anyhow::Result<Vec<Journal>> {
    let refused = |rule: &str| Err(bad_input(format_args!("{}: {rule}", path.display())));
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return refused(&format!("cannot be read: {error}"));
        }
        // Looked at before it is opened: opening a pipe would wait for its writer.
        Ok(found) if !found.is_file() && !found.is_dir() => return refused("not a regular file"),
        Ok(found) if found.is_file() && (location.is_some() || run.is_some()) => {
            return refused("a single segment: --location and --run choose in a folder");
        }
        _ => {}
    }
    let journals = reader::find(path, location, run).map_err(read_failed)?;
    if journals.is_empty() {
        return refused("no journal of that name here");
    }
    Ok(journals)
}

/// The one journal that a path names.
///
/// # Errors
/// As [`find`]; several locations.
pub(super) fn find_one(path: &Path) -> anyhow::Result<Journal> {
    let mut journals = find(path, None, None)?;
    if journals.len() > 1 {
        let rule = "several locations; name the folder of one";
        return Err(bad_input(format_args!("{}: {rule}", path.display())));
    }
    Ok(journals.remove(0))
}

/// An error of reading with the status to end with.
pub(super) fn read_failed(error: ReadError) -> anyhow::Error {
    let status = match error {
        ReadError::Io { .. } => Status::Io,
        ReadError::Bad(_) | ReadError::Damage(_) => Status::DamagedData,
    };
    match Err::<(), _>(error).with_status(status) {
        Err(error) => error,
        Ok(()) => unreachable!("an error stays one"),
    }
}

/// A journal from its last keyframe at or before `tick` on, or from its first; the keyframe has been read.
///
/// # Errors
/// Damage; IO.
pub(super) fn open_at(journal: &Journal, tick: u64) -> anyhow::Result<(JournalReader, Keyframe)> {
    let place = journal.keyframe_before(tick).map_err(read_failed)?;
    let reader = match place {
        Some(place) if tick > 0 => journal.read_from(&place),
        _ => journal.read(),
    };
    let mut reader = reader.map_err(read_failed)?;
    let Some(Record::Keyframe(keyframe)) = reader.next().map_err(read_failed)? else {
        unreachable!("reading begins with a keyframe, or it is refused");
    };
    Ok((reader, keyframe))
}

/// The definition that a journal carries.
///
/// # Errors
/// This release does not accept it.
pub(super) fn definition(reader: &JournalReader) -> anyhow::Result<Definition> {
    playback::definition(reader.bundle()).with_status(Status::DamagedData)
}

/// Whether this release can step the Worlds of a journal as they were stepped when it was recorded.
///
/// # Errors
/// It was recorded by another ruleset.
pub(super) fn check_ruleset(reader: &JournalReader, definition: &Definition) -> anyhow::Result<()> {
    let header = reader.header();
    let known = (sim::RULESET, sim::ruleset_hash(definition.planner()));
    if (header.ruleset, header.ruleset_hash) == known {
        return Ok(());
    }
    Err(anyhow::anyhow!(
        "{}: made by ruleset {} ({:016x}), this release plays {} ({:016x})",
        reader.segment().path().display(),
        header.ruleset,
        header.ruleset_hash,
        known.0,
        known.1
    ))
    .with_status(Status::DamagedData)
}
