//! What a location says and does while its journal is not kept.

use protocol::message::ClockState;

use super::*;

impl Stage {
    fn storage(&mut self, storage: Storage) {
        self.location
            .watch_storage(storage, self.now_us, &mut self.outputs);
        self.sort();
    }

    /// State and base of each Clock that was sent since it was last asked for.
    fn told(&mut self) -> Vec<(ClockState, u64, u64)> {
        let frames = std::mem::take(&mut self.clocks);
        let told = |frame: &Bytes| match protocol::wire::decode_server(&frame[4..]) {
            Ok(ServerMessage::Clock {
                base_tick,
                base_us,
                state,
            }) => (state, base_tick, base_us),
            other => panic!("{other:?}"),
        };
        frames.iter().map(told).collect()
    }

    /// Its client comes back with what it was told.
    fn come_back(&mut self, number: u64, welcome: &Welcome) {
        self.resume(number, resume_of(welcome));
    }
}

fn stop_of(character: u32) -> Command {
    Command::Stop {
        character: CharacterId(character),
    }
}

#[test]
fn a_clock_that_holds_is_told_at_once_and_every_second() {
    for storage in [Storage::Behind, Storage::Failing] {
        let mut stage = Stage::new(start());
        stage.turns(3);
        stage.storage(storage);
        let held = (ClockState::Storage, 0, 0);
        assert_eq!(stage.told(), [held]);
        let held_us = stage.now_us;
        for after_us in [10_000, 999_999, 1_000_000, 1_500_000, 2_000_000] {
            stage.now_us = held_us + after_us;
            stage.storage(storage);
        }
        assert_eq!(stage.told(), [held, held]);
        stage.now_us = held_us + 2_500_000;
        stage.storage(Storage::Kept);
        assert_eq!(stage.told(), [(ClockState::Running, 3, stage.now_us)]);
        let next = (stage.location.next_tick(), stage.location.due_us());
        assert_eq!(next, (3, stage.now_us));
        stage.storage(Storage::Kept);
        stage.turns(2);
        assert_eq!(stage.told(), []);
        let counters = stage.location.counters();
        assert_eq!((counters.holds, counters.slips, counters.ticks), (1, 0, 5));
    }
}

#[test]
fn while_it_cannot_be_written_newcomers_and_new_commands_are_refused() {
    let mut stage = Stage::new(start());
    let welcome = stage.join(1, "Ann");
    let own = welcome.characters[0].0;
    stage.command(1, 1, stop_of(own));
    stage.storage(Storage::Failing);
    stage.command(1, 2, stop_of(own));
    assert_eq!(stage.answers(1), [(2, Err(Code::REFUSED_STORAGE))]);
    stage.enter(2, hello("Ben"));
    assert_eq!(stage.end(2), Some(Code::REJECT_STORAGE));
    stage.come_back(3, &welcome);
    assert_eq!(stage.end(3), Some(Code::REJECT_STORAGE));
    // Whoever is there stays, and what waited goes on.
    assert!(!stage.forgotten.contains(&connection(1)));
    stage.now_us += 40_000_000;
    stage.storage(Storage::Kept);
    stage.turns(1);
    assert_eq!(stage.answers(1), [(1, Ok(1))]);
    stage.command(1, 3, stop_of(own));
    stage.turns(1);
    assert_eq!(stage.answers(1), [(3, Ok(2))]);
}

#[test]
fn while_the_disk_is_behind_everybody_waits_like_the_turns() {
    let mut stage = Stage::new(start());
    let own = stage.join(1, "Ann").characters[0].0;
    stage.storage(Storage::Behind);
    stage.command(1, 1, stop_of(own));
    stage.enter(2, hello("Ben"));
    assert_eq!(stage.answers(1), []);
    stage.now_us += 500_000;
    stage.storage(Storage::Kept);
    stage.turns(1);
    assert_eq!(stage.answers(1), [(1, Ok(1))]);
    assert_eq!(stage.welcome(2).next_tick, 2);
}

#[test]
fn a_grace_lasts_as_much_longer_as_nobody_could_come_back() {
    let mut stage = Stage::new(start());
    let welcome = stage.join(1, "Ann");
    stage.take(Input::Gone(connection(1)));
    stage.storage(Storage::Failing);
    stage.now_us += 50_000_000;
    stage.storage(Storage::Kept);
    stage.turns(1);
    stage.come_back(2, &welcome);
    stage.turns(1);
    assert_eq!(stage.welcome(2).session, welcome.session);
}

#[test]
fn while_the_disk_is_behind_an_answer_is_given_again_but_not_for_ever() {
    let mut stage = Stage::new(start());
    let welcome = stage.join(1, "Ann");
    let own = welcome.characters[0].0;
    stage.command(1, 1, stop_of(own));
    stage.turns(1);
    assert_eq!(stage.answers(1), [(1, Ok(1))]);
    stage.storage(Storage::Behind);
    for _ in 0..512 {
        stage.command(1, 1, stop_of(own));
    }
    assert_eq!(stage.answers(1), [(1, Ok(1)); 512]);
    stage.now_us += 3_600_000_000;
    stage.command(1, 1, stop_of(own));
    assert_eq!(stage.end(1), Some(Code::CLOSE_RATE), "they all wait for the disk");
    stage.storage(Storage::Kept);
    // The same on a new connection, until so many turns have run.
    for (number, turns, expected) in [(2, 100, Some(Code::CLOSE_RATE)), (3, 1, None)] {
        stage.turns(turns);
        stage.come_back(number, &welcome);
        stage.command(number, 1, stop_of(own));
        assert_eq!(stage.end(number), expected, "connection {number}");
    }
    assert_eq!(stage.players(), ["Ann"]);
}
