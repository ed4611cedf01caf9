//! The lockstep wire protocol: bytes to messages and back; no IO in here.
