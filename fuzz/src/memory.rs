//! No memory by a length that is only claimed.

/// Bytes that an input of any length may cost.
const BYTES_MAX: u64 = 4 << 20;
/// Bytes that it may cost for each of its own: a command of two bytes is a large enum, and there are copies of Worlds.
const BYTES_PER_BYTE_MAX: u64 = 1 << 10;

/// Runs a target, and checks how much memory it had at once.
///
/// # Panics
/// At a finding.
pub fn check(target: fn(&[u8]), input: &[u8]) {
    let used = allocation_counter::measure(|| target(input)).bytes_max;
    let allowed = BYTES_MAX + BYTES_PER_BYTE_MAX * input.len() as u64;
    assert!(
        used <= allowed,
        "{used} bytes of memory for an input of {}",
        input.len()
    );
}
