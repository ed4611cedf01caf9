//! End-to-end tests: the real binary, real sockets and files on loopback, on ports the system picks. They wait for events
//! (lines the daemon prints, messages, exits), never for a time to pass; limits only keep a hang from lasting for ever.

mod admission;
mod bans;
mod bots;
mod command_line;
mod configuration;
mod corpus;
mod crash;
mod desync;
mod disk;
mod durability;
mod fuzz_inputs;
mod fuzz_seeds;
mod guard;
mod harness;
mod journal;
mod locations;
mod logs;
mod network;
mod operations;
mod pages;
mod peer;
mod polygons;
mod replay;
mod schemas;
mod serve;
mod sessions;
mod shadow;
mod travel;
