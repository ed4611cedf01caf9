//! A lockstep client and bots.
