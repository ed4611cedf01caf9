//! What the characters that a Bot commands did before it came: they are to do it again when it leaves. No record says it, but
//! the history does: it is their behaviour before the turn in which the roster set it to Idle for that session.

use protocol::Origin;
use sim::{Behaviour, CharacterId, Command, Definition, World};

use super::record::{Record, Turn};
use super::run::SegmentFile;
use super::segment_reader::{Position, ReadError, SegmentReader};

/// A character that was there before the session that commands it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Borrowed {
    /// Which commands it; it may just have ended.
    pub(crate) session: u64,
    /// Whom.
    pub(crate) character: CharacterId,
    /// What it did before; `None`: the turn in which it was made to stand is not in the journal.
    pub(crate) behaviour: Option<Behaviour>,
}

/// Where a character was made to stand.
struct Taken {
    keyframe: Position,
    tick: u64,
    /// The command's place in the turn.
    index: usize,
}

/// Finds out what they did. `segments` are those of the run from its first on. What cannot be read is not known: nothing else
/// depends on it.
pub(super) fn find(
    segments: &[SegmentFile],
    definition: &Definition,
    lent: Vec<(u64, CharacterId)>,
) -> Vec<Borrowed> {
    let mut found = Vec::new();
    let mut wanted = lent;
    for segment in segments.iter().rev() {
        if wanted.is_empty() {
            break;
        }
        let Ok(mut reader) = SegmentReader::open(segment) else {
            break;
        };
        let (taken, older) = look_through(&mut reader, &wanted);
        let mut later = Vec::new();
        for ((session, character), taken) in wanted.into_iter().zip(taken) {
            let behaviour = match taken {
                Some(taken) => before(&mut reader, definition, &taken, character).unwrap_or_default(),
                None if older.contains(&session) => {
                    later.push((session, character));
                    continue;
                }
                // It began in this segment, and the kill came before its character was made to stand.
                None => None,
            };
            found.push(Borrowed {
                session,
                character,
                behaviour,
            });
        }
        wanted = later;
    }
    let unknown = wanted.into_iter().map(|(session, character)| Borrowed {
        session,
        character,
        behaviour: None,
    });
    found.extend(unknown);
    found.sort_by_key(|borrowed| (borrowed.session, borrowed.character));
    found
}

/// Where each was made to stand last, if it was in this segment, and the sessions that are older than the segment.
fn look_through(reader: &mut SegmentReader, wanted: &[(u64, CharacterId)]) -> (Vec<Option<Taken>>, Vec<u64>) {
    let mut taken: Vec<Option<Taken>> = wanted.iter().map(|_| None).collect();
    let mut older = None;
    loop {
        // An end that was torn has been cut off, or is that of an earlier segment, of which nothing more was recorded.
        let Ok(Some(record)) = reader.next() else {
            return (taken, older.unwrap_or_default());
        };
        match &record {
            Record::Sessions(sessions) if older.is_none() => {
                older = Some(sessions.sessions.iter().map(|session| session.session).collect());
            }
            Record::Turn(turn) => {
                let Some(keyframe) = reader.last_keyframe() else {
                    continue;
                };
                for (index, session, character) in made_to_stand(turn) {
                    let place = wanted.iter().position(|lent| *lent == (session, character));
                    if let Some(place) = place {
                        let tick = turn.tick;
                        taken[place] = Some(Taken {
                            keyframe,
                            tick,
                            index,
                        });
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whom the roster makes stand in a turn, for which session, and the commands' places.
fn made_to_stand(turn: &Turn) -> impl Iterator<Item = (usize, u64, CharacterId)> + '_ {
    let commands = turn.commands.iter().zip(turn.origins.iter()).enumerate();
    commands.filter_map(|(index, pair)| match pair {
        (
            Command::SetBehaviour {
                character,
                behaviour: Behaviour::Idle,
            },
            Origin::Roster { session, .. },
        ) => Some((index, *session, *character)),
        _ => None,
    })
}

/// What a character did before it was made to stand.
fn before(
    reader: &mut SegmentReader,
    definition: &Definition,
    taken: &Taken,
    character: CharacterId,
) -> Result<Option<Behaviour>, ReadError> {
    reader.seek(taken.keyframe)?;
    let mut world: Option<World> = None;
    let mut events = Vec::new();
    while let Some(record) = reader.next()? {
        match (&record, &mut world) {
            (Record::Keyframe(keyframe), None) => world = World::load(definition, &keyframe.snapshot).ok(),
            (Record::Turn(turn), Some(world)) if turn.tick < taken.tick => {
                events.clear();
                world.step_into(&turn.commands, &mut events);
            }
            (Record::Turn(turn), Some(world)) => {
                // Somebody may have changed it in this very turn.
                let earlier = turn.commands.iter().take(taken.index).rev();
                let mut changed = earlier.filter_map(|command| match command {
                    Command::SetBehaviour {
                        character: whose,
                        behaviour,
                    } if *whose == character => Some(behaviour.clone()),
                    _ => None,
                });
                let did = world.character(character).map(|there| there.behaviour.clone());
                return Ok(changed.next().or(did));
            }
            (Record::Turn(_), None) => return Ok(None),
            _ => {}
        }
    }
    Ok(None)
}
