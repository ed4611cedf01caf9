//! What a start does to a run before it goes on, without going on: for `journal repair`.

use serde::Serialize;

use super::aside;
use super::give_up::{self, GivenUp};
use super::playback;
use super::reader::checked_segments;
use super::record::Record;
use super::recovery::{self, OpenError, at};
use super::run::RunFolder;
use super::segment_reader::SegmentReader;
use super::sessions::SessionTable;

/// What was done.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Repaired {
    /// The step that comes next.
    pub(crate) next_tick: u64,
    /// The torn tail that was saved and cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) torn: Option<String>,
    /// What could not be proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) given_up: Option<GivenUp>,
}

/// Checks the end of a run as a start does, cuts a torn tail, and with `recover` gives up what cannot be proved. Of
/// earlier segments only the headers are read; all of them is what verifying is for.
///
/// # Errors
/// A daemon writes this location; damage, without `recover` or where nothing can be proved; a ruleset of another release;
/// IO.
pub(crate) fn repair(run: &RunFolder, recover: bool) -> Result<Repaired, OpenError> {
    let location = aside::folder_of(&run.path);
    let _lock = recovery::lock(location)?;
    match trim(run) {
        Err(OpenError::Damage(damage)) if recover => {
            let given_up = give_up::recover(run, &damage)?;
            Ok(Repaired {
                given_up: Some(given_up),
                ..trim(run)?
            })
        }
        trimmed => trimmed,
    }
}

fn trim(run: &RunFolder) -> Result<Repaired, OpenError> {
    let segments = checked_segments(&run.path)?;
    let (segment, header) = segments.last().expect("a checked run has a segment");
    let Some(Record::Definition(bundle)) = SegmentReader::open(segment)?.next()? else {
        unreachable!("a segment's first record is its definition, or it is refused");
    };
    let mut reader = SegmentReader::open(segment)?;
    let definition = playback::definition(&bundle).map_err(|problems| {
        let what = format!("this release does not accept its definition: {problems}");
        reader.located(reader.offset(), what)
    })?;
    recovery::check_ruleset(segment, header, &definition)?;
    let mut repaired = Repaired::default();
    if let Some(torn) = recovery::read_to_end(&mut reader, &mut SessionTable::default())? {
        repaired.torn = Some(recovery::cut_torn(&torn, &mut reader)?);
    }
    let keyframe = reader.last_keyframe().expect("a segment begins with a keyframe");
    reader.seek(keyframe)?;
    let (world, _) = recovery::replay(&mut reader, &definition)?;
    repaired.next_tick = world.tick();
    recovery::sync_what_was_read(segment, run, aside::folder_of(&run.path))?;
    recovery::remove_temporaries(&run.path).map_err(at(&run.path))?;
    Ok(repaired)
}
