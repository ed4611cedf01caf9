//! A Redirect followed by those who write clients: the library, and `bot` (spec 10, "Travel").

use client::{Client, ClientEvent, Options};
use protocol::message::Role;
use serde_json::{Value, json};
use sim::Command;

use crate::admission::{Guarded, claims};
use crate::harness::{Bots, HANG};
use crate::pages::{POLYGON, TOWN, daemon, done, get};

/// Follows until `wanted` finds what it looks for; a difference of Worlds is never that.
async fn until<T>(client: &mut Client, mut wanted: impl FnMut(ClientEvent) -> Option<T>) -> T {
    let search = async {
        loop {
            match client.next().await {
                Some(ClientEvent::Desynced { tick, .. }) => panic!("a desync at tick {tick}"),
                Some(ClientEvent::Ended(ending)) => panic!("the client ended: {ending}"),
                Some(event) => {
                    if let Some(found) = wanted(event) {
                        return found;
                    }
                }
                None => panic!("the client ended"),
            }
        }
    };
    tokio::time::timeout(HANG, search)
        .await
        .expect("what is waited for comes")
}

/// Is sent away, arrives, simulates, and commands its character there.
async fn arrives(client: &mut Client) {
    until(client, |event| {
        matches!(event, ClientEvent::Moving { .. }).then_some(())
    })
    .await;
    until(client, |event| {
        matches!(event, ClientEvent::Joined { resumed: false, .. }).then_some(())
    })
    .await;
    until(client, |event| {
        matches!(event, ClientEvent::Loaded { .. }).then_some(())
    })
    .await;
    let character = client.characters()[0];
    let sequence = client
        .command(Command::Stop { character })
        .expect("nothing waits");
    until(client, |event| match event {
        ClientEvent::Answered {
            sequence: answered,
            again: false,
            ..
        } if answered == sequence => Some(()),
        _ => None,
    })
    .await;
}

fn names(http: std::net::SocketAddr, location: &str) -> Vec<Value> {
    let sessions = get(http, &format!("/api/locations/{location}/sessions"));
    let sessions = sessions.as_array().expect("a list").iter();
    sessions.map(|session| session["name"].clone()).collect()
}

#[tokio::test]
async fn the_library_goes_where_it_is_sent_and_comes_back() {
    let (daemon, _data, http) = daemon(&["--location", TOWN, POLYGON], &[]);
    let mut client = Client::connect(Options::new(daemon.address.to_string(), "Ann"))
        .await
        .expect("it is let in");
    let session = client.session().expect("it is there");
    for (from, to) in [("town", "town-polygon"), ("town-polygon", "town")] {
        let travel = json!({ "session": session, "to": to });
        done(http, &format!("/api/locations/{from}/travel"), &travel);
        arrives(&mut client).await;
        assert_eq!(client.session(), Some(session));
        assert_eq!(names(http, to), ["Ann"]);
        assert_eq!(names(http, from), [""; 0]);
    }

    // To another daemon, with the ticket that the caller hands over.
    let other = Guarded::start(&[]);
    let travel = json!({
        "session": session,
        "to": "town",
        "address": other.daemon.address.to_string(),
        "ticket": other.sign(claims("ann", Role::Player)),
    });
    done(http, "/api/locations/town/travel", &travel);
    arrives(&mut client).await;
    assert_eq!(names(http, "town"), [""; 0]);
    client.leave();
    while client.next().await.is_some() {}
    daemon.terminate();
    other.daemon.terminate();
}

#[test]
fn bots_go_where_they_are_sent() {
    let (daemon, _data, http) = daemon(&["--location", TOWN, POLYGON], &[]);
    let bots = Bots::start(daemon.address, 1, 6, &["--location", "town", "--rate", "10"]);
    let wait = |location: &str| loop {
        let sessions = get(http, &format!("/api/locations/{location}/sessions"));
        if sessions[0]["state"] == "connected" {
            return sessions[0]["session"].clone();
        }
    };
    let session = wait("town");
    for (from, to) in [("town", "town-polygon"), ("town-polygon", "town")] {
        let travel = json!({ "session": session, "to": to });
        done(http, &format!("/api/locations/{from}/travel"), &travel);
        assert_eq!(wait(to), session);
    }
    let (status, summary) = bots.finish();
    assert_eq!(status, Some(0), "{summary:#}");
    let seen = ["moves", "desyncs", "missing_turns", "rejoins"].map(|key| summary[key].as_u64());
    assert_eq!(seen, [Some(2), Some(0), Some(0), Some(0)], "{summary:#}");
    daemon.terminate();
}
