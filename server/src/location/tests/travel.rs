//! The way to another place: who may go, and who is told what.

use super::*;
use crate::location::operator::Destination;

impl Stage {
    fn travel(&mut self, session: u64) -> oneshot::Receiver<Reply> {
        let to = Destination {
            location: Text::cut("cellar"),
            address: Text::default(),
            ticket: Text::cut("a ticket"),
        };
        self.ask(Request::Travel { session, to })
    }

    fn is_redirected(&self, number: u64) -> bool {
        let sent = self.parcels.get(&connection(number)).into_iter().flatten();
        sent.into_iter()
            .any(|parcel| matches!(parcel, Parcel::Redirect(_)))
    }
}

/// Done, refused for this reason, or not answered (yet).
fn seen(answer: &mut oneshot::Receiver<Reply>) -> Option<Result<(), &'static str>> {
    match answer.try_recv() {
        Ok(Reply::Done { .. }) => Some(Ok(())),
        Ok(Reply::Refused(reason)) => Some(Err(reason)),
        Ok(other) => panic!("{other:?}"),
        Err(_) => None,
    }
}

#[test]
fn the_operator_is_answered_when_the_traveller_has_been_told() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    let mut answer = stage.travel(ann.session);
    assert_eq!((seen(&mut answer), stage.is_redirected(1)), (None, false));
    assert_eq!(stage.location.status().connections(), 1, "nobody has gone yet");
    // The clock may stop just then.
    let mut paused = stage.ask(Request::Pause);
    assert_eq!(seen(&mut paused), Some(Ok(())));
    let mut resumed = stage.ask(Request::Resume);
    assert_eq!(seen(&mut resumed), Some(Ok(())));
    assert_eq!((seen(&mut answer), stage.is_redirected(1)), (None, false));
    stage.turns(1);
    assert_eq!((seen(&mut answer), stage.is_redirected(1)), (Some(Ok(())), true));
    assert_eq!(stage.end(1), Some(Code::CLOSE_MOVED));
    assert_eq!(stage.location.status().connections(), 0);
    assert!(stage.players().is_empty());
}

#[test]
fn nobody_is_sent_away_while_the_clock_stands_still() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    let refused = Some(Err("the clock stands still, so nobody could leave"));
    stage.ask(Request::Pause);
    assert_eq!(seen(&mut stage.travel(ann.session)), refused);
    stage.ask(Request::Resume);
    for storage in [Storage::Behind, Storage::Failing] {
        stage
            .location
            .watch_storage(storage, stage.now_us, &mut stage.outputs);
        assert_eq!(seen(&mut stage.travel(ann.session)), refused, "{storage:?}");
    }
    stage
        .location
        .watch_storage(Storage::Kept, stage.now_us, &mut stage.outputs);
    stage.turns(1);
    assert_eq!(stage.players(), ["Ann"]);
    let mut answer = stage.travel(ann.session);
    stage.turns(1);
    assert_eq!(seen(&mut answer), Some(Ok(())));
}

#[test]
fn whoever_has_not_left_at_the_end_is_told_so() {
    for (new_run, code, reason) in [
        (false, Code::CLOSE_STOPPING, "the daemon ends"),
        (true, Code::CLOSE_RUN_ENDED, "a new run begins"),
    ] {
        let mut stage = Stage::new(start());
        let ann = stage.join(1, "Ann");
        let mut answer = stage.travel(ann.session);
        stage.ask(Request::Pause);
        if new_run {
            stage.ask(Request::NewRun);
        }
        stage.take(Input::Stop);
        assert_eq!(seen(&mut answer), Some(Err(reason)));
        assert!(!stage.is_redirected(1));
        assert_eq!(stage.end(1), Some(code));
    }
}
