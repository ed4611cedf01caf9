//! A thread that finds out where a client's World parted from the server's, and keeps both: whatever takes time or a disk
//! when digests differ. The location waits for none of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::thread;

use protocol::message::Short;
use protocol::report::{REPORT_EXTENSION, SectionDigests, Side};
use protocol::{Blob, Report, ServerMessage, Turn, bundle};
use sim::{Definition, World};

use super::Input;
use super::history::Recomputation;
use super::reports::ClientWorld;
use super::task::Envelope;

/// Bytes of all reports of a run.
const FOLDER_BYTES_MAX: u64 = 256 << 20;

/// What is to be found out, or kept.
#[derive(Debug)]
pub(crate) enum Question {
    /// The parts' digests after an earlier step; answered with [`Input::Sections`].
    Sections(Recomputation),
    /// A client's World is to be kept; answered with [`Input::ReportKept`].
    Keep(Box<ClientWorld>),
}

/// Where reports go.
#[derive(Clone)]
pub(crate) struct Folder {
    path: PathBuf,
    /// As they all begin.
    blank: Report,
}

impl Folder {
    /// Of a run; it is made when there is something to put into it.
    pub(crate) fn new(path: PathBuf, run: [u8; 16], definition: &Definition, bundle: &[u8]) -> Self {
        let blank = Report {
            side: Side::Server,
            session: 0,
            location: Short::cut(definition.name()),
            run,
            definition: bundle::hash(bundle),
            tick_rate: definition.tick_rate(),
            ruleset: sim::RULESET,
            ruleset_hash: sim::ruleset_hash(definition.planner()),
            next_tick: 0,
            expected: 0,
            sections: None,
            snapshot: Blob::default(),
            bundle: Blob::new(bundle::pack(bundle)).ok(),
        };
        Self { path, blank }
    }

    /// Writes a report unless the folder is full. Not synced: losing one loses nothing that anybody was promised.
    fn write(&self, report: &Report) -> io::Result<Option<PathBuf>> {
        fs::create_dir_all(&self.path)?;
        let bytes = report.encode();
        if bytes_in(&self.path)? + bytes.len() as u64 > FOLDER_BYTES_MAX {
            return Ok(None);
        }
        let path = self.path.join(report.file_name());
        let unfinished = path.with_extension("part");
        fs::write(&unfinished, bytes)?;
        fs::rename(&unfinished, &path)?;
        Ok(Some(path))
    }

    /// The World after a turn and the shadow's, which is another one.
    pub(super) fn keep_shadow(&self, definition: &Definition, turn: &Turn, after: &[u8], shadow: &World) {
        let sections = World::load(definition, after).ok();
        let sections = sections.map(|world| SectionDigests::from(&world.sections()));
        let blob = |bytes: &[u8]| Blob::new(bytes.to_vec()).expect("no World is so large");
        for (side, snapshot) in [
            (Side::Server, blob(after)),
            (Side::Shadow, blob(shadow.snapshot_bytes())),
        ] {
            self.keep(&Report {
                side,
                next_tick: turn.tick + 1,
                expected: turn.digest,
                sections: sections.clone(),
                snapshot,
                ..self.blank.clone()
            });
        }
    }

    fn keep(&self, report: &Report) {
        let tick = report.next_tick.saturating_sub(1);
        match self.write(report) {
            Ok(Some(path)) => tracing::warn!(tick, path = %path.display(), "desync report kept"),
            Ok(None) => tracing::warn!(tick, "no desync report: the folder of this run is full"),
            Err(error) => tracing::warn!(tick, %error, "no desync report"),
        }
    }
}

/// How many clients' reports a run's folder holds.
pub(crate) fn reports_in(folder: &Path) -> u32 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let is_of_client = |name: &str| name.ends_with(REPORT_EXTENSION) && name.contains("-session-");
    let names = entries.flatten().map(|entry| entry.file_name());
    let count = names
        .filter(|name| name.to_str().is_some_and(is_of_client))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn bytes_in(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        bytes += entry?.metadata()?.len();
    }
    Ok(bytes)
}

/// Starts the thread; it answers one question at a time and ends with its location.
///
/// # Errors
/// The system gives no thread.
pub(crate) fn spawn(
    definition: Definition,
    folder: Option<Folder>,
    inputs: Sender<Envelope>,
) -> io::Result<Sender<Question>> {
    let (sender, questions) = mpsc::channel::<Question>();
    thread::Builder::new()
        .name("recompute".to_owned())
        .spawn(move || {
            while let Ok(question) = questions.recv() {
                let input = answer(&definition, folder.as_ref(), question);
                let envelope = Envelope {
                    input,
                    entrant: None,
                    permit: None,
                };
                if inputs.send(envelope).is_err() {
                    break;
                }
            }
        })?;
    Ok(sender)
}

fn answer(definition: &Definition, folder: Option<&Folder>, question: Question) -> Input {
    match question {
        Question::Sections(recomputation) => {
            let world = recompute(definition, &recomputation);
            if let (Some(world), Some(folder), true) = (&world, folder, recomputation.keep) {
                let snapshot = Blob::new(world.snapshot()).expect("no World is so large");
                folder.keep(&Report {
                    next_tick: world.tick(),
                    expected: world.digest(),
                    sections: Some((&world.sections()).into()),
                    snapshot,
                    ..folder.blank.clone()
                });
            }
            Input::Sections {
                tick: recomputation.tick,
                sections: world.map(|world| Box::new(world.sections())),
            }
        }
        Question::Keep(client) => {
            if let Some(folder) = folder {
                folder.keep(&Report {
                    side: Side::Client,
                    session: client.session,
                    next_tick: client.tick + 1,
                    expected: client.expected,
                    sections: client.sections.as_deref().map(SectionDigests::from),
                    snapshot: Blob::new(client.bytes).expect("a report's limit is below a snapshot's"),
                    ..folder.blank.clone()
                });
            }
            Input::ReportKept
        }
    }
}

/// The World that a [`Recomputation`] asks for; `None` if its turns do not lead to its tick.
pub(crate) fn recompute(definition: &Definition, recomputation: &Recomputation) -> Option<World> {
    let mut world = World::load(definition, &recomputation.snapshot).ok()?;
    let mut events = Vec::new();
    for frame in &recomputation.turns {
        let payload = frame.get(protocol::frame::LENGTH_BYTES..)?;
        let Ok(ServerMessage::Turn(turn)) = protocol::wire::decode_server(payload) else {
            return None;
        };
        events.clear();
        world.step_into(&turn.commands, &mut events);
    }
    (world.tick() == recomputation.tick + 1).then_some(world)
}
