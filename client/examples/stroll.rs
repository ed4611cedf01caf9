//! A player that strolls: `cargo run -p client --example stroll -- 127.0.0.1:7777 Ann`.
//!
//! It joins, steps the World itself, walks to one place after the other, says what it meets, and comes back by itself
//! when the connection is lost. Ctrl-C ends it; the server then keeps its character for the grace.

use client::bot::Places;
use client::{Answer, Client, ClientEvent, Lockstep, Options, Random};
use protocol::Code;
use sim::{Command, Event};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), client::Ending> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7777".to_owned());
    let name = arguments.next().unwrap_or_else(|| "Stroller".to_owned());
    let mut client = Client::connect(Options::new(address, name)).await?;
    let mut random = Random::new(std::process::id().into());
    let mut places = None;
    while let Some(event) = client.next().await {
        match event {
            ClientEvent::Joined { resumed: true, .. } => println!("back again"),
            ClientEvent::Loaded { tick } => {
                let definition = client.lockstep().and_then(Lockstep::definition);
                if let (None, Some((_, definition))) = (&places, definition) {
                    places = Some(Places::find(definition, &mut random));
                    println!("in {} at tick {tick}", definition.name());
                    walk(&mut client, places.as_ref(), &mut random);
                }
            }
            ClientEvent::Stepped { events, .. } => {
                let own = client.characters().first().copied();
                let arrived =
                    |event: &Event| matches!(event, Event::Arrived { character } if Some(*character) == own);
                if events.iter().any(arrived) {
                    walk(&mut client, places.as_ref(), &mut random);
                }
            }
            ClientEvent::Answered { answer, .. } => match answer {
                Answer::Accepted {
                    outcome: Code::APPLIED,
                    ..
                } => {}
                other => println!("the server says {other:?}"),
            },
            ClientEvent::Disconnected { reason, retry_in } => println!("{reason}; again in {retry_in:?}"),
            ClientEvent::Desynced { tick, .. } => println!("tick {tick} came out differently here"),
            ClientEvent::Ended(ending) => return Err(ending),
            _ => {}
        }
    }
    Ok(())
}

/// Sets out for some place, if there is one.
fn walk(client: &mut Client, places: Option<&Places>, random: &mut Random) {
    let place = places.and_then(|places| places.draw(random));
    if let (Some(place), Some(character)) = (place, client.characters().first().copied()) {
        println!("to {}, {}", place.x, place.z);
        let (x, z) = (place.x, place.z);
        if let Err(error) = client.command(Command::MoveTo { character, x, z }) {
            println!("{error}");
        }
    }
}
