//! Commands that wait for their turn (spec 4.1): which tick, which order, how many.

use std::collections::BTreeMap;

use protocol::Code;
use protocol::message::TURN_BYTES_MAX;
use sim::{CharacterId, Command};

/// Commands per character that one session gets into a turn.
pub(crate) const COMMANDS_PER_CHARACTER_AND_TURN: usize = 2;
/// Commands that an Admin gets into a turn.
pub(crate) const ADMIN_COMMANDS_PER_TURN: usize = 64;
/// Commands of one session for one character that may wait, scheduled ones included.
pub(crate) const WAITING_PER_CHARACTER_MAX: usize = 16;
/// Commands of one session that may wait, scheduled ones included.
pub(crate) const WAITING_PER_SESSION_MAX: usize = 128;
/// Of the bytes of a turn, what is not commands: variant, tick, count, digest and room to spare.
const TURN_BYTES_RESERVED: usize = 64;
/// How far ahead of the last closed turn a command may be scheduled, seconds.
pub(crate) const AHEAD_SECONDS_MAX: u64 = 10;

const _: () = assert!(WAITING_PER_CHARACTER_MAX <= WAITING_PER_SESSION_MAX);
const _: () = assert!(ADMIN_COMMANDS_PER_TURN <= WAITING_PER_SESSION_MAX);

/// Who a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A client; the sequence is its own.
    Session {
        /// The session.
        session: u64,
        /// The command's number in it, from 1.
        sequence: u64,
    },
    /// The location itself, for this session (0: for one that it does not know any more).
    Roster {
        /// The session.
        session: u64,
    },
    /// An operator, by the location's number for the request.
    Operator {
        /// The request.
        request: u64,
    },
}

impl Source {
    /// From whom or for whom it is.
    fn session(self) -> u64 {
        match self {
            Self::Session { session, .. } | Self::Roster { session } => session,
            // Nobody's: 0 is the number of no session.
            Self::Operator { .. } => 0,
        }
    }

    fn is_client(self, of: u64) -> bool {
        matches!(self, Self::Session { session, .. } if session == of)
    }
}

/// A command and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Who it comes from.
    pub(crate) source: Source,
    /// What is to be done.
    pub(crate) command: Command,
    /// Bytes of the command on the wire.
    bytes: usize,
    /// How many commands its session gets into a turn; the roster's are not counted.
    per_turn: usize,
}

/// What one session may have waiting and get into a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// So many characters are its own.
    Characters(usize),
    /// It commands all of them.
    Admin,
}

impl Allowance {
    fn per_turn(self) -> usize {
        match self {
            Self::Characters(count) => count * COMMANDS_PER_CHARACTER_AND_TURN,
            Self::Admin => ADMIN_COMMANDS_PER_TURN,
        }
    }
}

/// A session's command that comes into the inbox.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    /// Whose.
    pub(crate) session: u64,
    /// The session's number for it.
    pub(crate) sequence: u64,
    /// What the session may.
    pub(crate) allowance: Allowance,
    /// The turn it is for; `None`: the first with room.
    pub(crate) at_tick: Option<u64>,
    /// What is wanted.
    pub(crate) command: Command,
}

/// The commands that wait, each with its arrival number.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    next_arrival: u64,
    /// By arrival number: the first turn with room.
    unscheduled: BTreeMap<u64, Entry>,
    /// By tick and arrival number.
    scheduled: BTreeMap<(u64, u64), Entry>,
    /// How many clients' commands wait, by session and character.
    waiting: BTreeMap<(u64, u32), usize>,
}

impl Inbox {
    /// The roster's own commands run in the first turn with room; they count against no session.
    pub(crate) fn push_roster(&mut self, session: u64, command: Command) {
        self.push_own(Source::Roster { session }, command);
    }

    /// An operator's command runs in the first turn with room; how many there are is the caller's to limit.
    pub(crate) fn push_operator(&mut self, request: u64, command: Command) {
        self.push_own(Source::Operator { request }, command);
    }

    /// Whether something waits for the next turn.
    pub(crate) fn has_commands(&self) -> bool {
        !self.unscheduled.is_empty() || !self.scheduled.is_empty()
    }

    fn push_own(&mut self, source: Source, command: Command) {
        let entry = Entry {
            source,
            bytes: protocol::wire::encode(&command).len(),
            command,
            per_turn: usize::MAX,
        };
        let arrival = self.arrival();
        self.unscheduled.insert(arrival, entry);
    }

    /// A session's command; `next_tick` is the turn that will be closed next.
    ///
    /// # Errors
    /// Too late, too far ahead, or too many already.
    pub(crate) fn push(&mut self, arrived: Arrived, next_tick: u64, tick_rate: u16) -> Result<(), Code> {
        if let Some(tick) = arrived.at_tick {
            if tick < next_tick {
                return Err(Code::REFUSED_TOO_LATE);
            }
            // Counted from the last closed turn, next_tick − 1.
            if tick >= next_tick.saturating_add(AHEAD_SECONDS_MAX * u64::from(tick_rate)) {
                return Err(Code::REFUSED_TOO_FAR);
            }
        }
        self.check_waiting(&arrived)?;
        let entry = Entry {
            source: Source::Session {
                session: arrived.session,
                sequence: arrived.sequence,
            },
            bytes: protocol::wire::encode(&arrived.command).len(),
            command: arrived.command,
            per_turn: arrived.allowance.per_turn(),
        };
        match arrived.at_tick {
            None => {
                self.count(&entry);
                let arrival = self.arrival();
                self.unscheduled.insert(arrival, entry);
            }
            Some(tick) => {
                self.check_scheduled(arrived.session, tick, &entry)?;
                self.count(&entry);
                let arrival = self.arrival();
                self.scheduled.insert((tick, arrival), entry);
            }
        }
        Ok(())
    }

    /// Closes turn `tick`: what is scheduled for it, then what waits, while there is room; in order of arrival.
    pub(crate) fn close(&mut self, tick: u64) -> Vec<Entry> {
        let later = self.scheduled.split_off(&(tick + 1, 0));
        let mut turn: Vec<(u64, Entry)> = std::mem::replace(&mut self.scheduled, later)
            .into_iter()
            .map(|((_, arrival), entry)| (arrival, entry))
            .collect();
        let mut room =
            TURN_BYTES_MAX - TURN_BYTES_RESERVED - turn.iter().map(|(_, e)| e.bytes).sum::<usize>();
        let mut used = BTreeMap::<u64, usize>::new();
        for (_, entry) in &turn {
            if let Source::Session { session, .. } = entry.source {
                *used.entry(session).or_default() += 1;
            }
        }
        let mut taken = Vec::new();
        for (&arrival, entry) in &self.unscheduled {
            if entry.bytes > room {
                break;
            }
            if let Source::Session { session, .. } = entry.source {
                let used = used.entry(session).or_default();
                if *used >= entry.per_turn {
                    continue;
                }
                *used += 1;
            }
            room -= entry.bytes;
            taken.push(arrival);
        }
        for arrival in taken {
            if let Some(entry) = self.unscheduled.remove(&arrival) {
                turn.push((arrival, entry));
            }
        }
        for (_, entry) in &turn {
            self.uncount(entry);
        }
        turn.sort_by_key(|(arrival, _)| *arrival);
        turn.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Whether commands of this session wait.
    pub(crate) fn waits(&self, session: u64) -> bool {
        let mut waiting = self.waiting.range((session, 0)..=(session, u32::MAX));
        waiting.next().is_some()
    }

    /// Forgets what a session has scheduled for a later turn.
    pub(crate) fn forget_scheduled(&mut self, session: u64) {
        let scheduled = std::mem::take(&mut self.scheduled);
        for (place, entry) in scheduled {
            if entry.source.is_client(session) {
                self.uncount(&entry);
            } else {
                self.scheduled.insert(place, entry);
            }
        }
    }

    /// Forgets what waits from a session or for it.
    pub(crate) fn forget(&mut self, session: u64) {
        let stays = |entry: &Entry| entry.source.session() != session;
        self.unscheduled.retain(|_, entry| stays(entry));
        self.scheduled.retain(|_, entry| stays(entry));
        self.waiting.retain(|(other, _), _| *other != session);
    }

    /// Takes out everything that sessions have waiting: (session, sequence) in order of arrival.
    pub(crate) fn drain_sessions(&mut self) -> Vec<(u64, u64)> {
        let mut all: Vec<(u64, Source)> = self
            .unscheduled
            .iter()
            .map(|(&arrival, entry)| (arrival, entry.source))
            .chain(
                self.scheduled
                    .iter()
                    .map(|(&(_, arrival), entry)| (arrival, entry.source)),
            )
            .collect();
        all.sort_unstable();
        self.unscheduled.clear();
        self.scheduled.clear();
        self.waiting.clear();
        all.into_iter()
            .filter_map(|(_, source)| match source {
                Source::Session { session, sequence } => Some((session, sequence)),
                Source::Roster { .. } | Source::Operator { .. } => None,
            })
            .collect()
    }

    fn check_waiting(&self, arrived: &Arrived) -> Result<(), Code> {
        let session = arrived.session;
        let waiting: usize = self
            .waiting
            .range((session, 0)..=(session, u32::MAX))
            .map(|(_, count)| count)
            .sum();
        let key = (session, waiting_for(&arrived.command));
        let for_character = self.waiting.get(&key).copied().unwrap_or_default();
        let character_full =
            arrived.allowance != Allowance::Admin && for_character >= WAITING_PER_CHARACTER_MAX;
        if waiting >= WAITING_PER_SESSION_MAX || character_full {
            return Err(Code::REFUSED_RATE);
        }
        Ok(())
    }

    fn count(&mut self, entry: &Entry) {
        if let Source::Session { session, .. } = entry.source {
            *self
                .waiting
                .entry((session, waiting_for(&entry.command)))
                .or_default() += 1;
        }
    }

    fn uncount(&mut self, entry: &Entry) {
        if let Source::Session { session, .. } = entry.source {
            let key = (session, waiting_for(&entry.command));
            match self.waiting.get_mut(&key) {
                Some(count) if *count > 1 => *count -= 1,
                _ => {
                    self.waiting.remove(&key);
                }
            }
        }
    }

    /// A scheduled command runs in its tick or not at all, so its place there is kept from now on.
    fn check_scheduled(&self, session: u64, tick: u64, entry: &Entry) -> Result<(), Code> {
        let (mut of_session, mut bytes) = (0, entry.bytes);
        for (_, other) in self.scheduled.range((tick, 0)..=(tick, u64::MAX)) {
            bytes += other.bytes;
            of_session += usize::from(other.source.is_client(session));
        }
        if of_session >= entry.per_turn || bytes > TURN_BYTES_MAX - TURN_BYTES_RESERVED {
            return Err(Code::REFUSED_RATE);
        }
        Ok(())
    }

    fn arrival(&mut self) -> u64 {
        self.next_arrival += 1;
        self.next_arrival
    }
}

/// The character that a command is about.
pub(crate) fn character_of(command: &Command) -> Option<CharacterId> {
    match command {
        Command::MoveTo { character, .. }
        | Command::Stop { character }
        | Command::Talk { character, .. }
        | Command::Leave { character }
        | Command::Despawn { character }
        | Command::SetEnabled { character, .. }
        | Command::SetAlive { character, .. }
        | Command::Teleport { character, .. }
        | Command::SetBehaviour { character, .. }
        | Command::Application { character, .. } => Some(*character),
        Command::SpawnBot(spec) | Command::SpawnNpc(spec) => Some(spec.id),
        Command::Join { .. }
        | Command::SetAreaAvailable { .. }
        | Command::AddObstacle { .. }
        | Command::RemoveObstacle { .. }
        | Command::SwitchMap { .. } => None,
    }
}

/// The character whose waiting commands this one is counted with; 0, which is nobody, for those about none.
fn waiting_for(command: &Command) -> u32 {
    character_of(command).map_or(0, |character| character.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nav::Fixed;
    use sim::bounded::List;

    const PLAYER: Allowance = Allowance::Characters(1);

    fn stop(character: u32) -> Command {
        Command::Stop {
            character: CharacterId(character),
        }
    }

    fn arrived(session: u64, sequence: u64, at_tick: Option<u64>) -> Arrived {
        Arrived {
            session,
            sequence,
            allowance: PLAYER,
            at_tick,
            command: stop(session as u32),
        }
    }

    /// Closes a turn; (session, sequence) of each of its commands, the roster's with sequence 0.
    fn close(inbox: &mut Inbox, tick: u64) -> Vec<(u64, u64)> {
        let turn = inbox.close(tick);
        turn.iter()
            .map(|entry| match entry.source {
                Source::Session { session, sequence } => (session, sequence),
                Source::Roster { session } => (session, 0),
                Source::Operator { request } => (request, 0),
            })
            .collect()
    }

    #[test]
    fn at_tick_has_a_first_and_a_last() {
        let check = |at_tick: u64, expected: Result<(), Code>| {
            let mut inbox = Inbox::default();
            let outcome = inbox.push(arrived(1, 1, Some(at_tick)), 100, 10);
            assert_eq!(
                outcome, expected,
                "for tick {at_tick}, when 99 was the last closed"
            );
        };
        check(0, Err(Code::REFUSED_TOO_LATE));
        check(99, Err(Code::REFUSED_TOO_LATE));
        check(100, Ok(()));
        check(199, Ok(()));
        check(200, Err(Code::REFUSED_TOO_FAR));
        check(u64::MAX, Err(Code::REFUSED_TOO_FAR));
    }

    #[test]
    fn commands_run_in_the_order_of_their_arrival() {
        let mut inbox = Inbox::default();
        let mut push = |session, sequence, at_tick| {
            inbox
                .push(arrived(session, sequence, at_tick), 0, 10)
                .expect("there is room");
        };
        push(1, 1, None);
        push(1, 2, Some(1));
        push(1, 3, None);
        push(2, 1, None);
        push(1, 4, None);
        push(1, 5, None);
        push(2, 2, Some(1));
        push(2, 3, None);
        inbox.push_roster(3, stop(9));
        assert_eq!(close(&mut inbox, 0), [(1, 1), (1, 3), (2, 1), (2, 3), (3, 0)]);
        // The scheduled one keeps its number and its place among the session's two.
        assert_eq!(close(&mut inbox, 1), [(1, 2), (1, 4), (2, 2)]);
        assert_eq!(close(&mut inbox, 2), [(1, 5)]);
        assert_eq!(close(&mut inbox, 3), []);
    }

    #[test]
    fn so_many_wait_and_so_many_run() {
        let check = |allowance: Allowance, characters: u32, waiting: usize, per_turn: usize| {
            let mut inbox = Inbox::default();
            let push = |inbox: &mut Inbox, sequence: u64| {
                let command = stop(1 + (sequence % u64::from(characters)) as u32);
                let mut arrived = arrived(1, sequence, None);
                arrived.allowance = allowance;
                arrived.command = command;
                inbox.push(arrived, 0, 10)
            };
            let taken = (1..=200)
                .take_while(|sequence| push(&mut inbox, *sequence).is_ok())
                .count();
            assert_eq!(taken, waiting, "{allowance:?} may have waiting");
            assert_eq!(push(&mut inbox, 999), Err(Code::REFUSED_RATE));
            assert_eq!(
                close(&mut inbox, 0).len(),
                per_turn,
                "{allowance:?} gets into a turn"
            );
            assert_eq!(push(&mut inbox, 1_000), Ok(()), "room again");
        };
        check(Allowance::Characters(1), 1, 16, 2);
        check(Allowance::Characters(3), 3, 48, 6);
        check(Allowance::Characters(20), 20, 128, 40);
        check(Allowance::Admin, 1, 128, 64);
    }

    #[test]
    fn a_tick_is_full_for_a_session_after_two() {
        let mut inbox = Inbox::default();
        let mut check = |session: u64, sequence: u64, tick: u64, expected: Result<(), Code>| {
            let outcome = inbox.push(arrived(session, sequence, Some(tick)), 0, 10);
            assert_eq!(
                outcome, expected,
                "command {sequence} of session {session} for tick {tick}"
            );
        };
        check(1, 1, 5, Ok(()));
        check(1, 2, 5, Ok(()));
        check(1, 3, 5, Err(Code::REFUSED_RATE));
        check(1, 4, 6, Ok(()));
        check(2, 1, 5, Ok(()));
    }

    /// The largest obstacle that a command can add.
    fn large(name: &str) -> Command {
        let corner = nav::Point::new(Fixed::from_int(-16_000), Fixed::from_int(16_000));
        Command::AddObstacle {
            name: sim::bounded::Text::cut(name),
            polygon: List::new(vec![corner; sim::POLYGON_POINTS_MAX]).expect("the limit"),
        }
    }

    #[test]
    fn a_turn_has_a_size_and_the_rest_waits_in_order() {
        let size = protocol::wire::encode(&large("wall")).len();
        let fit = (TURN_BYTES_MAX - TURN_BYTES_RESERVED) / size;
        let arrived = |sequence: u64, at_tick: Option<u64>| Arrived {
            allowance: Allowance::Admin,
            command: large("wall"),
            ..arrived(1, sequence, at_tick)
        };
        let mut inbox = Inbox::default();
        for sequence in 1..=fit as u64 + 3 {
            inbox.push(arrived(sequence, None), 0, 10).expect("there is room");
        }
        inbox.push_roster(2, stop(1));
        let first = close(&mut inbox, 0);
        assert_eq!(first.len(), fit);
        let second = close(&mut inbox, 1);
        assert_eq!(second.last(), Some(&(2, 0)), "nothing overtakes, however small");
        assert_eq!(second.len(), 4);

        let scheduled = (1..)
            .take_while(|n| inbox.push(arrived(*n, Some(9)), 2, 10).is_ok())
            .count();
        assert_eq!(scheduled, fit, "what is scheduled has its place for sure");
        assert_eq!(close(&mut inbox, 9).len(), fit);
    }

    #[test]
    fn what_is_forgotten_does_not_run_and_does_not_count() {
        let mut inbox = Inbox::default();
        for sequence in 1..=16 {
            inbox
                .push(arrived(1, sequence, None), 0, 10)
                .expect("there is room");
        }
        inbox.push(arrived(2, 1, Some(3)), 0, 10).expect("there is room");
        inbox.push_roster(1, stop(1));
        inbox.forget_scheduled(1);
        assert!(inbox.waits(1));
        inbox.forget(1);
        assert!(!inbox.waits(1));
        assert_eq!(close(&mut inbox, 0), []);
        assert_eq!(inbox.push(arrived(1, 17, None), 0, 10), Ok(()));
        assert_eq!(inbox.push(arrived(3, 1, Some(3)), 0, 10), Ok(()));
        inbox.forget_scheduled(3);
        assert!(!inbox.waits(3));
        assert_eq!(inbox.drain_sessions(), [(2, 1), (1, 17)]);
        assert_eq!(close(&mut inbox, 3), []);
    }
}
