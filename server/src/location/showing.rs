//! What those with the State feed are shown: after each step, and where the clock stands as soon as they need it.

use std::collections::BTreeSet;

use protocol::Code;
use protocol::message::Role;
use sim::CharacterId;

use super::outbox::Parcel;
use super::roster::{Connection, Feed, Session};
use super::state_feed::{self, NotShown, Scene, Viewer};
use super::{Location, Output, Rules};

/// Why something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occasion {
    /// A step has run.
    Step,
    /// No step will come soon: for those who know nothing yet, without events.
    Still,
}

impl Location {
    /// Tells those who watch states what the step that has just run changed.
    pub(super) fn show_step(&mut self, now_us: u64, out: &mut Vec<Output>) {
        self.show(Occasion::Step, now_us, out);
    }

    /// While no turns become due: those who have just come, want to see something else, or have lost what they were sent,
    /// see the World as the last step left it. Before the first step there is no such state.
    pub(super) fn show_still(&mut self, now_us: u64, out: &mut Vec<Output>) {
        if self.world.tick() > 0 {
            self.show(Occasion::Still, now_us, out);
        }
    }

    fn show(&mut self, occasion: Occasion, now_us: u64, out: &mut Vec<Output>) {
        let observes = |session: &Session| match session.connection() {
            Some(Connection {
                feed: Feed::State(feed),
                welcomed: true,
                ..
            }) => occasion == Occasion::Step || feed.is_blank(now_us),
            _ => false,
        };
        let mut wanted = BTreeSet::new();
        for session in self.roster.iter_mut().filter(|session| observes(session)) {
            let own = session.characters.first().copied();
            let viewer = viewer(own, session.role, &self.rules);
            if let Some(Connection {
                feed: Feed::State(feed),
                ..
            }) = session.connection_mut()
            {
                feed.change_view(now_us);
                wanted.insert(feed.key(viewer));
            }
        }
        if occasion == Occasion::Step {
            self.state_groups.keep(&wanted);
        }
        if wanted.is_empty() {
            return;
        }
        let tick = self.world.tick() - 1;
        let map = self.state_groups.share_map(self.world.map_state());
        let scene = Scene {
            tick,
            world: &self.world,
            map: &map,
            events: match occasion {
                Occasion::Step => &self.events,
                Occasion::Still => &[],
            },
        };
        let mut too_large = Vec::new();
        for session in self.roster.iter_mut().filter(|session| observes(session)) {
            let own = session.characters.first().copied();
            let viewer = viewer(own, session.role, &self.rules);
            let Some(Connection {
                id,
                feed: Feed::State(feed),
                ..
            }) = session.connection_mut()
            else {
                continue;
            };
            let shown = match occasion {
                Occasion::Step => self.state_groups.frames(feed, &scene, viewer),
                Occasion::Still => state_feed::still(feed, &scene, viewer).map(|frames| Some((frames, true))),
            };
            match shown {
                Ok(Some((frames, whole))) => {
                    out.push(Output::Send(*id, Parcel::State { tick, whole, frames }));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(connection = id.0, %error, "a state is too large to be sent");
                    too_large.push((*id, error));
                }
            }
        }
        for (connection, error) in too_large {
            // A whole one would not fit either; whoever comes back with a smaller view can be shown something.
            let message = match error {
                NotShown::Frame(_) => "more in view than a frame holds",
                NotShown::NoRoom => "more in view than there is room for beside other views",
            };
            self.close(connection, Code::CLOSE_FRAME_TOO_LARGE, message, now_us, out);
        }
    }
}

/// Who looks, if somebody of this role does, whose character is `own`.
pub(super) fn viewer(own: Option<CharacterId>, role: Role, rules: &Rules) -> Viewer {
    Viewer {
        own,
        radius_max: match role {
            Role::Player | Role::Bot => rules.player_view_radius,
            Role::Watcher | Role::Admin => None,
        },
    }
}
