//! A client against a server that does what a test says, over a real socket.

#[allow(dead_code)] // other tests use the rest
mod common;

use client::{Answer, Client, ClientEvent, Ending};
use common::Authority;
use common::server::{Server, both, ending, kick, kicked, loaded, until};
use protocol::message::{Desync, Need, Resume, Welcome};
use protocol::{ClientMessage, Code, ServerMessage, handshake};
use sim::bounded::List;
use sim::{CharacterId, Command};
use tokio::io::AsyncWriteExt;

fn stop() -> Command {
    Command::Stop {
        character: CharacterId(1),
    }
}

fn accepted(sequence: u64) -> ServerMessage {
    ServerMessage::Accepted {
        sequence,
        tick: 3,
        index: 0,
        outcome: Code::APPLIED,
    }
}

#[tokio::test]
async fn joins_steps_and_is_answered() {
    let server = Server::new().await;
    let play = async {
        let mut authority = Authority::with_player();
        let (mut peer, hello) = server.accept().await;
        assert_eq!(
            (&*hello.name, hello.resume, hello.definition),
            ("Ann", None, Need::Send)
        );
        peer.let_in(&authority).await;
        let command = ClientMessage::Command {
            sequence: 1,
            at_tick: Some(3),
            command: stop(),
        };
        assert_eq!(peer.receive().await, command);
        let turn = authority.turn(vec![stop()]);
        let digest = turn.digest;
        peer.send([ServerMessage::Turn(turn), accepted(1), accepted(1)])
            .await;
        assert_eq!(peer.receive().await, ClientMessage::Digest { tick: 3, digest });
        assert_eq!(peer.receive().await, ClientMessage::Goodbye);
        peer.stream
            .write_all(&handshake::close(Code::CLOSE_GOODBYE, ""))
            .await
            .expect("it writes");
    };
    let use_it = async {
        let options = server.options();
        let definitions = options.definitions.clone();
        let mut client = Client::connect(options).await.expect("let in");
        assert!(matches!(
            client.next().await,
            Some(ClientEvent::Joined {
                resumed: false,
                tick_rate: 20,
                ..
            })
        ));
        assert_eq!(loaded(&mut client).await, 3);
        assert!(definitions.newest().is_some());
        assert_eq!(client.schedule(stop(), Some(3)), Ok(1));
        let commands = until(&mut client, |event| match event {
            ClientEvent::Stepped {
                tick: 3, commands, ..
            } => Some(commands.clone()),
            // An answer never comes before its turn.
            ClientEvent::Answered { .. } => panic!("answered before the turn"),
            _ => None,
        });
        assert_eq!(commands.await, [stop()]);
        for twice in [false, true] {
            let answer = until(&mut client, |event| match event {
                ClientEvent::Answered {
                    sequence: 1,
                    answer,
                    again,
                    ..
                } => Some((answer.clone(), *again)),
                _ => None,
            });
            let expected = Answer::Accepted {
                tick: 3,
                index: 0,
                outcome: Code::APPLIED,
            };
            assert_eq!(answer.await, (expected, twice));
        }
        assert_eq!(client.unanswered(), 0);
        client.leave();
        assert!(matches!(ending(&mut client).await, Ending::Left));
        let statistics = client.statistics();
        assert!(statistics.bytes_in > 500 && statistics.bytes_out > 50);
    };
    both(play, use_it).await;
}

#[tokio::test]
async fn a_lost_connection_is_resumed_and_commands_are_sent_again_in_order() {
    let server = Server::new().await;
    let play = async {
        let mut authority = Authority::with_player();
        let (mut peer, _) = server.accept().await;
        peer.let_in(&authority).await;
        for _ in 0..3 {
            peer.receive().await;
        }
        // One is answered; the connection goes inside the next frame.
        let turn = authority.turn(vec![stop()]);
        let digest = turn.digest;
        peer.send([ServerMessage::Turn(turn), accepted(2)]).await;
        assert_eq!(peer.receive().await, ClientMessage::Digest { tick: 3, digest });
        peer.stream.write_all(&[9, 0, 0]).await.expect("it writes");
        drop(peer);

        let (mut peer, hello) = server.accept().await;
        let resume = Resume {
            session: 7,
            token: [2; 16],
            run: [1; 16],
            next_tick: 4,
            digest,
        };
        assert_eq!(hello.resume, Some(resume));
        assert_eq!(hello.definition, Need::Have(authority.bundle.hash()));
        let token = [3; 16];
        peer.welcome(Welcome {
            token,
            last_sequence: 3,
            ..authority.welcome()
        })
        .await;
        for expected in [1, 3] {
            let ClientMessage::Command { sequence, .. } = peer.receive().await else {
                panic!("a command is sent again");
            };
            assert_eq!(sequence, expected);
        }
        peer.send([
            ServerMessage::Turn(authority.turn(vec![])),
            accepted(1),
            accepted(3),
        ])
        .await;
        assert!(matches!(
            peer.receive().await,
            ClientMessage::Digest { tick: 4, .. }
        ));
        // It ends and comes back: the new token is the one that counts.
        let stopping = handshake::close(Code::CLOSE_STOPPING, "");
        peer.stream.write_all(&stopping).await.expect("it writes");
        drop(peer);
        let (mut peer, hello) = server.accept().await;
        assert_eq!(
            hello.resume.map(|resume| (resume.token, resume.next_tick)),
            Some((token, 5))
        );
        let replaced = handshake::close(Code::CLOSE_REPLACED, "elsewhere");
        peer.welcome(authority.welcome()).await;
        peer.stream.write_all(&replaced).await.expect("it writes");
    };
    let use_it = async {
        let mut client = Client::connect(server.options()).await.expect("let in");
        loaded(&mut client).await;
        for sequence in 1..=3 {
            assert_eq!(client.command(stop()), Ok(sequence));
        }
        until(&mut client, |event| {
            matches!(event, ClientEvent::Joined { resumed: true, .. }).then_some(())
        })
        .await;
        assert_eq!(client.unanswered(), 2);
        let end = ending(&mut client).await;
        assert!(
            matches!(
                end,
                Ending::Closed {
                    code: Code::CLOSE_REPLACED,
                    ..
                }
            ),
            "{end}"
        );
        assert_eq!(client.unanswered(), 0);
        let statistics = client.statistics();
        assert_eq!(
            (statistics.reconnects, statistics.resumes, statistics.disconnects),
            (2, 2, 2)
        );
    };
    both(play, use_it).await;
}

#[tokio::test]
async fn a_desync_is_reported_and_cured_by_a_snapshot() {
    let server = Server::new().await;
    let play = async {
        let mut authority = Authority::with_player();
        let (mut peer, _) = server.accept().await;
        peer.let_in(&authority).await;
        let mut turn = authority.turn(vec![]);
        turn.digest ^= 1;
        let wrong = turn.digest;
        peer.send([
            ServerMessage::Turn(turn),
            ServerMessage::Turn(authority.turn(vec![])),
        ])
        .await;
        let ClientMessage::Digest { tick: 3, digest } = peer.receive().await else {
            panic!("the digest comes first");
        };
        assert_ne!(digest, wrong);
        assert_eq!(peer.receive().await, ClientMessage::Resync);
        // All zero: the server could not compute them any more.
        let desync = Desync {
            tick: 3,
            expected: wrong,
            clock: 0,
            map: 0,
            planner: 0,
            characters: List::default(),
            want_report: false,
        };
        peer.send([ServerMessage::Desync(Box::new(desync))]).await;
        peer.send(authority.snapshot_messages()).await;
        peer.send([ServerMessage::Turn(authority.turn(vec![]))]).await;
        assert!(matches!(
            peer.receive().await,
            ClientMessage::Digest { tick: 5, .. }
        ));
    };
    let use_it = async {
        let mut client = Client::connect(server.options()).await.expect("let in");
        loaded(&mut client).await;
        until(&mut client, |event| {
            matches!(event, ClientEvent::Desynced { tick: 3, .. }).then_some(())
        })
        .await;
        until(&mut client, |event| match event {
            ClientEvent::Different(difference) => panic!("nobody said so: {difference:?}"),
            event => matches!(event, ClientEvent::Unexplained { tick: 3 }).then_some(()),
        })
        .await;
        let report = client.desync_report().expect("what it had itself");
        assert_eq!((report.next_tick, report.sections), (4, None));
        assert_eq!(loaded(&mut client).await, 5);
        until(&mut client, |event| {
            matches!(event, ClientEvent::Stepped { tick: 5, .. }).then_some(())
        })
        .await;
        client
    };
    both(play, use_it).await;
}

#[tokio::test]
async fn a_session_that_is_over_is_joined_anew() {
    let server = Server::new().await;
    let reject = |code| ServerMessage::Reject {
        code,
        min_version: 1,
        max_version: 1,
        message: Default::default(),
    };
    let play = async {
        let authority = Authority::with_player();
        let (mut peer, _) = server.accept().await;
        peer.let_in(&authority).await;
        peer.receive().await;
        drop(peer);
        for code in [Code::REJECT_BUSY, Code::REJECT_RESUME_INVALID] {
            let (mut peer, hello) = server.accept().await;
            assert!(hello.resume.is_some());
            peer.send([reject(code)]).await;
        }
        // The name is in its grace.
        let (mut peer, hello) = server.accept().await;
        assert!(hello.resume.is_none());
        peer.send([reject(Code::REJECT_NAME_TAKEN)]).await;
        let (mut peer, _) = server.accept().await;
        peer.welcome(Welcome {
            session: 8,
            ..authority.welcome()
        })
        .await;
        kick(peer).await;
    };
    let use_it = async {
        let mut options = server.options();
        options.reconnect.rejoin = true;
        let mut client = Client::connect(options).await.expect("let in");
        client.command(stop()).expect("few");
        let lost = until(&mut client, |event| match event {
            ClientEvent::SessionLost { code, unanswered } => Some((*code, unanswered.clone())),
            _ => None,
        });
        assert_eq!(lost.await, (Code::REJECT_RESUME_INVALID, vec![1]));
        kicked(&mut client).await;
        assert_eq!(client.statistics().reconnects, 1);
    };
    both(play, use_it).await;
}

#[tokio::test]
async fn whoever_is_not_let_in_is_told_why() {
    for code in [Code::REJECT_FULL, Code::REJECT_VERSION, Code(199)] {
        let server = Server::new().await;
        let play = async {
            let (mut peer, _) = server.accept().await;
            let reply = handshake::reject(code, "no", 100).expect("it fits");
            peer.stream.write_all(&reply).await.expect("it writes");
        };
        let (end, ()) = both(Client::connect(server.options()), play).await;
        let Err(Ending::Rejected {
            code: found, message, ..
        }) = end
        else {
            panic!("{end:?}");
        };
        assert_eq!((found, &*message), (code, "no"));
    }
}

#[tokio::test]
async fn nonsense_from_a_server_ends_the_connection_not_the_client() {
    let server = Server::new().await;
    let nonsense: [&[u8]; 4] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        &[0, 0, 0, 0],
        &[1, 0, 0, 0, 200],
        // A Turn before any Welcome.
        &[4, 0, 0, 0, 4, 0, 0, 0],
    ];
    let play = async {
        for bytes in nonsense {
            let (mut peer, _) = server.accept().await;
            peer.stream.write_all(bytes).await.expect("it writes");
        }
        let (mut peer, _) = server.accept().await;
        peer.let_in(&Authority::with_player()).await;
        peer
    };
    let (client, _peer) = both(Client::connect(server.options()), play).await;
    assert_eq!(client.expect("let in").characters(), [CharacterId(1)]);
}

#[tokio::test]
async fn another_ruleset_is_left_with_a_goodbye() {
    let server = Server::new().await;
    let play = async {
        let authority = Authority::new();
        let (mut peer, _) = server.accept().await;
        peer.welcome(Welcome {
            ruleset: 2,
            ..authority.welcome()
        })
        .await;
        assert_eq!(peer.receive().await, ClientMessage::Goodbye);
    };
    let (end, ()) = both(Client::connect(server.options()), play).await;
    let Err(Ending::Failed(error)) = end else {
        panic!("{end:?}")
    };
    assert!(error.to_string().contains("ruleset 2"), "{error}");
}
