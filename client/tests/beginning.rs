//! How a session begins and is begun again: what it asks for, what it is given, and where.

#[allow(dead_code)] // other tests use the rest
mod common;

use client::{Client, ClientEvent, DownloadError, Ending, SessionError, Tickets};
use common::Authority;
use common::server::{Server, both, ending, kick, kicked, loaded, until};
use protocol::ServerMessage;
use protocol::message::{Feed, Need, Role, Welcome};
use protocol::ticket::{Claims, KeyId, SigningKey};
use sim::bounded::{List, Text};

#[tokio::test]
async fn whoever_wants_the_definition_gets_it_with_any_feed() {
    for feed in [Feed::State, Feed::Answers] {
        let server = Server::new().await;
        let authority = Authority::with_player();
        let hash = authority.bundle.hash();
        let play = async {
            // A part that came before the connection was lost is of no use.
            let (mut peer, hello) = server.accept().await;
            assert_eq!((hello.feed, hello.definition), (feed, Need::Send));
            peer.welcome(authority.welcome()).await;
            peer.send(authority.definition_messages().into_iter().take(1))
                .await;
            drop(peer);

            let (mut peer, hello) = server.accept().await;
            assert_eq!(hello.definition, Need::Send);
            peer.welcome(authority.welcome()).await;
            peer.send(authority.definition_messages()).await;
            let text = Text::cut("whole");
            peer.send([ServerMessage::Notice { text }]).await;
            drop(peer);

            let (mut peer, hello) = server.accept().await;
            assert_eq!(hello.definition, Need::Have(hash));
            peer.welcome(authority.welcome()).await;
            kick(peer).await;
        };
        let use_it = async {
            let mut options = server.options();
            (options.feed, options.want_definition) = (feed, true);
            let definitions = options.definitions.clone();
            let mut client = Client::connect(options).await.expect("let in");
            assert!(client.definition().is_none());
            until(&mut client, |event| {
                matches!(event, ClientEvent::Notice { .. }).then_some(())
            })
            .await;
            let definition = client.definition().expect("it has come");
            assert_eq!(definition.name(), authority.definition.name());
            assert!(definitions.get(&hash).is_some() && definitions.bundle(&hash).is_some());
            kicked(&mut client).await;
        };
        both(play, use_it).await;
    }
}

#[tokio::test]
async fn a_definition_that_was_not_announced_is_not_taken() {
    for feed in [Feed::Lockstep, Feed::State] {
        let server = Server::new().await;
        let authority = Authority::with_player();
        let play = async {
            let (mut peer, _) = server.accept().await;
            peer.welcome(Welcome {
                definition: [9; 32],
                ..authority.welcome()
            })
            .await;
            peer.send(authority.definition_messages()).await;
            peer
        };
        let use_it = async {
            let mut options = server.options();
            (options.feed, options.want_definition) = (feed, true);
            let definitions = options.definitions.clone();
            let mut client = Client::connect(options).await.expect("let in");
            let Ending::Failed(error) = ending(&mut client).await else {
                panic!("it goes on")
            };
            assert!(
                matches!(*error, SessionError::Download(DownloadError::Hash)),
                "{error}"
            );
            assert!(definitions.newest().is_none());
        };
        both(play, use_it).await;
    }
}

/// Clients of one program share what they know: what one was given in parts, another may have brought meanwhile.
#[tokio::test]
async fn a_definition_that_another_client_has_brought_is_not_waited_for() {
    let server = Server::new().await;
    let authority = Authority::with_player();
    let hash = authority.bundle.hash();
    let options = server.options();
    let definitions = options.definitions.clone();
    let play = async {
        let (mut peer, hello) = server.accept().await;
        assert_eq!(hello.definition, Need::Send);
        peer.welcome(authority.welcome()).await;
        peer.send(authority.definition_messages().into_iter().take(1))
            .await;
        definitions.insert(hash, authority.definition.clone());
        drop(peer);
        let (mut peer, hello) = server.accept().await;
        assert_eq!(hello.definition, Need::Have(hash));
        peer.welcome(authority.welcome()).await;
        peer.send(authority.snapshot_messages()).await;
        peer
    };
    let use_it = async {
        let mut client = Client::connect(options).await.expect("let in");
        assert_eq!(loaded(&mut client).await, 3);
    };
    both(play, use_it).await;
}

/// Who names no location begins where the ticket is for; the ticket is used, and the first location may be another.
#[tokio::test]
async fn a_ticket_alone_says_where_the_session_is() {
    let pem = SigningKey::generate().expect("random numbers");
    let key = SigningKey::from_pem(pem.as_bytes()).expect("a key");
    let ticket = |location: &str| {
        key.sign(Claims {
            key: KeyId([0; 8]),
            audience: Text::cut("lockstepd"),
            location: Text::cut(location),
            subject: Text::cut("ann"),
            name: Text::cut("Ann"),
            role: Role::Player,
            characters: List::default(),
            not_before: 0,
            expires: 600,
            nonce: [1; 16],
        })
        .expect("a ticket")
    };
    // The options' location, the ticket's, and what the Hello that resumes says.
    let table = [
        ("", Some("yard"), "yard"),
        ("town", Some("town"), "town"),
        ("", None, ""),
    ];
    for (named, of_ticket, expected) in table {
        let server = Server::new().await;
        let authority = Authority::with_player();
        let play = async {
            let (mut peer, hello) = server.accept().await;
            assert_eq!(&*hello.location, named);
            assert_eq!(hello.ticket.is_some(), of_ticket.is_some());
            peer.welcome(authority.welcome()).await;
            drop(peer);
            let (mut peer, hello) = server.accept().await;
            assert!(hello.resume.is_some() && hello.ticket.is_none());
            assert_eq!(&*hello.location, expected);
            peer.welcome(authority.welcome()).await;
            kick(peer).await;
        };
        let use_it = async {
            let mut options = server.options();
            named.clone_into(&mut options.location);
            options.ticket = of_ticket.map(|location| Tickets::one(ticket(location)));
            let mut client = Client::connect(options).await.expect("let in");
            kicked(&mut client).await;
        };
        both(play, use_it).await;
    }
}
