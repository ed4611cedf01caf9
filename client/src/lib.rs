//! A lockstep client for a lockstepd server, and bots.
//!
//! A lockstep client gets a snapshot of the World and then the commands of every tick; it runs the same simulation as
//! the server and compares a digest after each step, so it holds the whole World, exact to the bit, for a few bytes a
//! tick. A client with the State feed gets what it may see instead, and one with the Answers feed nothing at all.
//!
//! [`Client`] does everything: it connects, joins, downloads the definition, keeps the World, sends commands until they
//! are answered, and when the connection is lost it comes back as who it was.
//!
//! ```no_run
//! use client::{Client, ClientEvent, Options};
//! use sim::Command;
//!
//! # async fn example() -> Result<(), client::Ending> {
//! let mut client = Client::connect(Options::new("127.0.0.1:7777", "Ann")).await?;
//! while let Some(event) = client.next().await {
//!     match event {
//!         ClientEvent::Loaded { tick } => {
//!             let own = client.characters()[0];
//!             println!("{} is in the World at tick {tick}", own.0);
//!             let there = nav::Point::new(nav::Fixed::from_int(3), nav::Fixed::from_int(4));
//!             let walk = Command::MoveTo { character: own, x: there.x, z: there.z };
//!             client.command(walk).expect("nothing waits yet");
//!         }
//!         ClientEvent::Stepped { .. } => {
//!             let world = client.world().expect("a turn was run in it");
//!             // Draw world.characters().
//!             # let _ = world;
//!         }
//!         ClientEvent::Answered { sequence, answer, .. } => println!("command {sequence}: {answer:?}"),
//!         ClientEvent::Ended(ending) => println!("{ending}"),
//!         _ => {}
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! For programs with IO of their own, [`Lockstep`] and [`Observer`] are what follows the two feeds, and [`Download`] puts a
//! definition together, without any IO.
//! A client whose World differs is healed by a snapshot; [`Client::desync_report`] and [`write_report`] keep what
//! differed, for `lockstepd diff`. [`bot`] has what a bot does when nobody tells it anything, [`script`] what it does by
//! a file of JSON lines.

pub mod bot;
mod client;
mod commands;
mod connection;
mod download;
mod event;
pub mod lockstep;
pub mod observer;
mod options;
mod parted;
mod parts;
mod random;
mod report;
pub mod script;
mod session;
mod stream;
#[cfg(feature = "tls")]
mod tls;

pub use client::{Client, Statistics};
pub use commands::{COMMANDS_WAITING_MAX, TooManyCommands};
pub use download::{Download, DownloadError, Downloaded};
pub use event::{Answer, ClientEvent, Ending};
pub use lockstep::{Lockstep, LockstepError, Simulation};
pub use observer::{Observed, Observer, ObserverError, Tally};
pub use options::{Definitions, Options, Reconnect, Tickets};
pub use parts::PartsError;
pub use random::Random;
pub use report::write_report;
pub use session::SessionError;
pub use stream::Stream;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
