//! A World that is stepped as the server steps its own, without IO: definition, snapshot and turns go in, steps and
//! digests come out (spec 4.5).
//!
//! It steps when a turn is there and never without one; no clock decides anything. After each step the digest is
//! compared with the server's. A client that differs, or that misses a turn, stops and needs a snapshot.
//!
//! With [`Simulation::Skip`] no World is kept: turns are only counted, so that none goes missing unseen. That is for
//! load tests and for tools that want the commands alone.

use std::collections::VecDeque;

use bytes::Bytes;
use protocol::message::{Desync, Part, Turn, Welcome};
use protocol::{ClientMessage, Report};
use sim::{CharacterId, Command, Definition, Event, RULESET, SnapshotError, World, ruleset_hash};

use crate::parted::Parted;
use crate::parts::{Parts, PartsError};

/// Turns kept while a snapshot comes: as long as a server keeps one alive and a little longer, at the fastest tick rate.
pub const TURNS_KEPT_MAX: usize = 64 * 128;
/// Bytes of a whole snapshot.
pub const SNAPSHOT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Whether a World is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Simulation {
    /// Each turn is run and its digest compared.
    Run,
    /// Turns are only counted.
    Skip,
}

/// One location as a lockstep client follows it, also over several connections.
#[derive(Debug)]
pub struct Lockstep {
    simulation: Simulation,
    welcome: Expected,
    definition: Option<([u8; 32], Definition)>,
    snapshot_parts: Option<(u64, Parts)>,
    snapshot: Option<(u64, Vec<u8>)>,
    turns: VecDeque<Turn>,
    phase: Phase,
    /// The bytes of the definition's bundle, for a report.
    bundle: Option<Bytes>,
    /// The state after the last step at which the digests differed.
    parted: Option<Box<Parted>>,
}

/// What the Welcome says that has to fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    pub(crate) session: u64,
    pub(crate) run: [u8; 16],
    pub(crate) definition: [u8; 32],
    pub(crate) ruleset: u32,
    pub(crate) ruleset_hash: u64,
}

#[derive(Debug)]
enum Phase {
    /// There has been no snapshot yet.
    Waiting,
    /// In step.
    Following(Body),
    /// Out of step: only a snapshot helps.
    Stalled(Body),
}

enum Body {
    World(Box<World>),
    /// No World: the step that comes next and the digest before it, once a turn has told it.
    Count {
        next_tick: u64,
        digest: Option<u64>,
    },
}

/// What has happened, one thing at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A snapshot is in place: step `tick` comes next.
    Loaded {
        /// The step that comes next.
        tick: u64,
    },
    /// A turn has been run (or counted), and the digests agree (or there is none to compare).
    Stepped {
        /// The step.
        tick: u64,
        /// D_tick; the World's own where one is kept.
        digest: u64,
        /// What the turn commanded.
        commands: Vec<Command>,
        /// What the step reported; empty where no World is kept.
        events: Vec<Event>,
    },
    /// The digests differ; the World stays as it is after that step until a snapshot comes.
    Desynced {
        /// The step.
        tick: u64,
        /// The server's digest.
        expected: u64,
        /// The World's.
        computed: u64,
    },
    /// Another turn than the next one. One that is ahead means that turns are missing: only a snapshot helps. One that
    /// is behind is dropped.
    OutOfOrder {
        /// The turn that was next.
        expected: u64,
        /// The turn that came.
        found: u64,
    },
}

/// Why it cannot go on at all.
#[derive(Debug, thiserror::Error)]
pub enum LockstepError {
    /// The location is stepped by other rules than this build knows (spec 5.5).
    #[error(
        "the location runs ruleset {ruleset} with hash {hash:016x}, this build has ruleset {RULESET}{}",
        .own_hash.map(|hash| format!(" with hash {hash:016x}")).unwrap_or_default()
    )]
    Ruleset {
        /// The server's ruleset.
        ruleset: u32,
        /// The server's hash of it.
        hash: u64,
        /// Ours for the planner of the location, if it is known already.
        own_hash: Option<u64>,
    },
    /// Parts of a snapshot that do not fit together.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// The snapshot does not fit the definition.
    #[error("the snapshot of tick {tick} cannot be loaded: {error}")]
    Snapshot {
        /// What it says it is.
        tick: u64,
        /// What is wrong.
        error: SnapshotError,
    },
    /// The snapshot has another tick than the message says.
    #[error("the snapshot of tick {named} is one of tick {found}")]
    SnapshotTick {
        /// By the message.
        named: u64,
        /// In the snapshot.
        found: u64,
    },
    /// The snapshot for which they were kept does not come.
    #[error("{TURNS_KEPT_MAX} turns without the snapshot that they follow")]
    TooManyTurns,
}

/// Where two Worlds differ after the step at which they parted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step.
    pub tick: u64,
    /// Ruleset, tick rate, tick, next player id or application hash differ.
    pub clock: bool,
    /// The map in use or what was changed on one.
    pub map: bool,
    /// What belongs to the planner.
    pub planner: bool,
    /// Characters that differ or that only one side has, in id order.
    pub characters: Vec<CharacterId>,
}

impl Lockstep {
    /// A location that one has been welcomed to. `definition` is what is known already, with its hash; it is used if it
    /// is the location's.
    ///
    /// # Errors
    /// The ruleset is not this build's.
    pub fn new(
        welcome: &Welcome,
        simulation: Simulation,
        definition: Option<([u8; 32], Definition)>,
    ) -> Result<Self, LockstepError> {
        let mut lockstep = Self {
            simulation,
            welcome: Expected::of(welcome),
            definition: None,
            snapshot_parts: None,
            snapshot: None,
            turns: VecDeque::new(),
            phase: Phase::Waiting,
            bundle: None,
            parted: None,
        };
        lockstep.check_ruleset_number()?;
        if let Some((hash, definition)) = definition {
            lockstep.define(hash, definition)?;
        }
        Ok(lockstep)
    }

    /// The same session on a new connection: what was half received is gone, the World goes on where it is. If the run
    /// is another one, or its definition, everything begins anew.
    ///
    /// # Errors
    /// The ruleset is not this build's.
    pub fn resumed(&mut self, welcome: &Welcome) -> Result<(), LockstepError> {
        self.disconnected();
        let before = std::mem::replace(&mut self.welcome, Expected::of(welcome));
        self.check_ruleset_number()?;
        if before.definition != self.welcome.definition {
            self.definition = None;
            self.bundle = None;
        }
        if before.run != self.welcome.run || before.definition != self.welcome.definition {
            self.phase = Phase::Waiting;
        }
        match &self.definition {
            Some((_, definition)) => self.check_ruleset_hash(definition),
            None => Ok(()),
        }
    }

    /// The connection is gone: what was half received is of no use.
    pub fn disconnected(&mut self) {
        self.snapshot_parts = None;
        self.turns.clear();
        if self.definition.is_none() {
            // It would have to wait for a definition that belongs to another connection.
            self.snapshot = None;
        }
    }

    /// A definition is there ([`Download`](crate::Download) puts one together); it is used if it is the location's.
    ///
    /// # Errors
    /// The location's planner has other rules than this build's.
    pub fn define(&mut self, hash: [u8; 32], definition: Definition) -> Result<(), LockstepError> {
        if hash == self.welcome.definition {
            self.check_ruleset_hash(&definition)?;
            self.definition = Some((hash, definition));
        }
        Ok(())
    }

    /// The bytes of the definition's bundle, so that a report can hold them.
    pub fn set_bundle(&mut self, bundle: Bytes) {
        self.bundle = Some(bundle);
    }

    /// A part of a snapshot has come. Until it is whole, turns are kept.
    ///
    /// # Errors
    /// The parts do not fit together.
    pub fn snapshot_part(
        &mut self,
        tick: u64,
        part: u32,
        parts: u32,
        bytes: &Part,
    ) -> Result<(), LockstepError> {
        // Another snapshot than the one that was coming replaces it.
        if part == 0 {
            self.snapshot_parts = Some((tick, Parts::new(parts, SNAPSHOT_BYTES_MAX)));
            // What they did is in it.
            self.turns.retain(|turn| turn.tick >= tick);
        }
        let Some((_, assembly)) = self.snapshot_parts.as_mut().filter(|(begun, _)| *begun == tick) else {
            return Err(LockstepError::Parts(PartsError::Order {
                part,
                parts,
                expected_part: 0,
                expected_parts: parts,
            }));
        };
        if let Some(whole) = assembly.add(part, parts, bytes)? {
            self.snapshot_parts = None;
            self.snapshot = Some((tick, whole));
        }
        Ok(())
    }

    /// A turn has come; [`Lockstep::poll`] runs it.
    ///
    /// # Errors
    /// Too many turns wait for a snapshot.
    pub fn turn(&mut self, turn: Turn) -> Result<(), LockstepError> {
        if self.turns.len() >= TURNS_KEPT_MAX {
            return Err(LockstepError::TooManyTurns);
        }
        self.turns.push_back(turn);
        Ok(())
    }

    /// Does the next thing that can be done: at most one step. `None`: more messages are needed.
    ///
    /// # Errors
    /// The snapshot cannot be loaded.
    pub fn poll(&mut self) -> Result<Option<Progress>, LockstepError> {
        if let Some(progress) = self.load()? {
            return Ok(Some(progress));
        }
        // While a snapshot comes, turns are kept: some of them follow it.
        if self.snapshot_parts.is_some() || self.snapshot.is_some() {
            return Ok(None);
        }
        let Phase::Following(body) = &mut self.phase else {
            return Ok(None);
        };
        let Some(turn) = self.turns.pop_front() else {
            return Ok(None);
        };
        let expected = body.next_tick();
        let progress = if turn.tick == expected {
            body.step(turn)
        } else {
            Progress::OutOfOrder {
                expected,
                found: turn.tick,
            }
        };
        let stalls = match progress {
            Progress::Desynced { .. } => true,
            Progress::OutOfOrder { expected, found } => found > expected,
            Progress::Loaded { .. } | Progress::Stepped { .. } => false,
        };
        if let Progress::Desynced {
            tick,
            expected,
            computed: _,
        } = progress
            && let Phase::Following(Body::World(world)) = &self.phase
        {
            self.parted = Some(Box::new(Parted::new(tick, expected, world)));
        }
        if stalls && let Phase::Following(body) = std::mem::replace(&mut self.phase, Phase::Waiting) {
            self.phase = Phase::Stalled(body);
        }
        Ok(Some(progress))
    }

    /// Out of step: a snapshot has to be asked for.
    pub fn needs_resync(&self) -> bool {
        matches!(self.phase, Phase::Stalled(_)) && self.snapshot_parts.is_none() && self.snapshot.is_none()
    }

    /// Where a resume would go on: the step that comes next, and the digest before it if it is known.
    pub fn position(&self) -> Option<(u64, Option<u64>)> {
        match &self.phase {
            Phase::Following(Body::World(world)) => Some((world.tick(), Some(world.digest()))),
            Phase::Following(Body::Count { next_tick, digest }) => Some((*next_tick, *digest)),
            Phase::Waiting | Phase::Stalled(_) => None,
        }
    }

    /// The step that comes next, also while out of step.
    pub fn next_tick(&self) -> Option<u64> {
        match &self.phase {
            Phase::Following(body) | Phase::Stalled(body) => Some(body.next_tick()),
            Phase::Waiting => None,
        }
    }

    /// The World, where one is kept and a snapshot has come.
    pub fn world(&self) -> Option<&World> {
        match &self.phase {
            Phase::Following(Body::World(world)) | Phase::Stalled(Body::World(world)) => Some(world),
            _ => None,
        }
    }

    /// The location's definition and its hash, once it is there.
    pub fn definition(&self) -> Option<(&[u8; 32], &Definition)> {
        self.definition
            .as_ref()
            .map(|(hash, definition)| (hash, definition))
    }

    /// The server says at which step and in what the Worlds differ: remembers that for the report, and says where, if the
    /// last step at which the digests differed is that one and the server could still tell. A snapshot may have replaced
    /// the World since.
    pub fn desynced(&mut self, desync: &Desync) -> Option<Difference> {
        self.parted.as_mut()?.told(desync)
    }

    /// What to keep of the last step at which the digests differed: this World after it, with the definition if its bytes
    /// are known.
    pub fn report(&self) -> Option<Report> {
        let (parted, (_, definition)) = (self.parted.as_ref()?, self.definition.as_ref()?);
        Some(parted.report(&self.welcome, definition, self.bundle.as_ref()))
    }

    /// The messages with which the World after step `tick` goes to a server that asked for it; none if that is not the
    /// last step at which the digests differed, or if the World is larger than a server takes.
    pub fn report_messages(&self, tick: u64) -> Vec<ClientMessage> {
        let parted = self.parted.as_ref();
        parted.map_or(Vec::new(), |parted| parted.messages(tick))
    }

    /// Puts a whole snapshot in place, if there is one and it can be used already.
    fn load(&mut self) -> Result<Option<Progress>, LockstepError> {
        let body = match (self.simulation, &self.snapshot, &self.definition) {
            (Simulation::Skip, Some((tick, _)), _) => Body::Count {
                next_tick: *tick,
                digest: None,
            },
            (Simulation::Run, Some((tick, bytes)), Some((_, definition))) => {
                let world = World::load(definition, bytes)
                    .map_err(|error| LockstepError::Snapshot { tick: *tick, error })?;
                if world.tick() != *tick {
                    return Err(LockstepError::SnapshotTick {
                        named: *tick,
                        found: world.tick(),
                    });
                }
                Body::World(Box::new(world))
            }
            _ => return Ok(None),
        };
        let tick = body.next_tick();
        self.snapshot = None;
        self.phase = Phase::Following(body);
        while self.turns.front().is_some_and(|turn| turn.tick < tick) {
            self.turns.pop_front();
        }
        Ok(Some(Progress::Loaded { tick }))
    }

    fn check_ruleset_number(&self) -> Result<(), LockstepError> {
        if self.simulation == Simulation::Skip || self.welcome.ruleset == RULESET {
            return Ok(());
        }
        Err(LockstepError::Ruleset {
            ruleset: self.welcome.ruleset,
            hash: self.welcome.ruleset_hash,
            own_hash: None,
        })
    }

    fn check_ruleset_hash(&self, definition: &Definition) -> Result<(), LockstepError> {
        let own_hash = ruleset_hash(definition.planner());
        if self.simulation == Simulation::Skip || self.welcome.ruleset_hash == own_hash {
            return Ok(());
        }
        Err(LockstepError::Ruleset {
            ruleset: self.welcome.ruleset,
            hash: self.welcome.ruleset_hash,
            own_hash: Some(own_hash),
        })
    }
}

impl Expected {
    fn of(welcome: &Welcome) -> Self {
        Self {
            session: welcome.session,
            run: welcome.run,
            definition: welcome.definition,
            ruleset: welcome.ruleset,
            ruleset_hash: welcome.ruleset_hash,
        }
    }
}

impl Body {
    fn next_tick(&self) -> u64 {
        match self {
            Self::World(world) => world.tick(),
            Self::Count { next_tick, .. } => *next_tick,
        }
    }

    /// Runs the turn that is next.
    fn step(&mut self, turn: Turn) -> Progress {
        let Turn {
            tick,
            commands,
            digest: expected,
        } = turn;
        let mut events = Vec::new();
        let computed = match self {
            Self::World(world) => {
                world.step_into(&commands, &mut events);
                world.digest()
            }
            Self::Count { next_tick, digest } => {
                *next_tick = tick.saturating_add(1);
                *digest = Some(expected);
                expected
            }
        };
        if computed == expected {
            Progress::Stepped {
                tick,
                digest: computed,
                commands: commands.into_vec(),
                events,
            }
        } else {
            Progress::Desynced {
                tick,
                expected,
                computed,
            }
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at tick {}", self.next_tick())
    }
}
