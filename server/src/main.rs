//! lockstepd: an authoritative lockstep game server.
fn main() {}
