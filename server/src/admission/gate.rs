//! How many unknown peers there may be, in all and of one address, and how often an address may come (spec 9.1). This machine
//! counts as no address of its own: whoever comes from it may be a proxy that stands for many.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::ConnectionLimits;

/// How long a new peer may wait for a place among the unknown ones.
const PLACE_WAIT: Duration = Duration::from_secs(1);
/// Peers of one address that may wait for a place; nothing is read from them.
const WAITING_PER_ADDRESS_MAX: usize = 256;
/// Peers that may wait for a place.
const WAITING_MAX: usize = 1_024;
/// Connects a second of an address that is not this machine's, unless the settings say otherwise.
const CONNECTS_PER_SECOND: u32 = 20;
/// So many seconds' connects may come at once.
const BURST_SECONDS: u32 = 10;
/// Addresses remembered for their rate.
const ADDRESSES_MAX: usize = 4_096;

/// See the module.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: ConnectionLimits,
    places: Arc<Semaphore>,
    visitors: Mutex<Visitors>,
}

#[derive(Debug, Default)]
struct Visitors {
    by_address: BTreeMap<IpAddr, Visits>,
    /// Connections that are open, waiting ones included.
    open: usize,
    waiting: usize,
}

#[derive(Debug)]
struct Visits {
    places: Arc<Semaphore>,
    waiting: usize,
    /// Connects that may come at once, in thousandths.
    tokens: u64,
    counted: Instant,
}

/// Somebody's place among the unknown ones, given back when they are known.
#[derive(Debug)]
pub(crate) struct Pending {
    _place: OwnedSemaphorePermit,
    _of_address: OwnedSemaphorePermit,
}

/// A connection that counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct Open(Arc<Gate>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.lock().open -= 1;
    }
}

impl Gate {
    /// With as many connections as `descriptors` allow, too.
    pub(crate) fn new(limits: ConnectionLimits, descriptors: usize) -> Arc<Self> {
        let limits = ConnectionLimits {
            connections_max: limits.connections_max.min(descriptors),
            ..limits
        };
        Arc::new(Self {
            limits,
            places: Arc::new(Semaphore::new(limits.pending_max)),
            visitors: Mutex::default(),
        })
    }

    /// Somebody connects; `None`: too many, or too often.
    pub(crate) fn knock(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<Open> {
        let mut visitors = self.lock();
        if visitors.open >= self.limits.connections_max || !visitors.may_come(&self.limits, address, now) {
            return None;
        }
        visitors.open += 1;
        Some(Open(Arc::clone(self)))
    }

    /// Waits a moment for a place among the unknown ones; `None`: there is none.
    pub(crate) async fn place(&self, address: IpAddr) -> Option<Pending> {
        let of_address = self.lock().wait(address)?;
        let waiting = Waiting { gate: self, address };
        let place = timeout(PLACE_WAIT, async {
            // The semaphores are never closed.
            let of_address = of_address.acquire_owned().await.ok()?;
            let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
            Some(Pending {
                _place: place,
                _of_address: of_address,
            })
        });
        let place = place.await.ok().flatten();
        drop(waiting);
        place
    }

    fn lock(&self) -> MutexGuard<'_, Visitors> {
        self.visitors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts as waiting until it is dropped.
struct Waiting<'a> {
    gate: &'a Gate,
    address: IpAddr,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut visitors = self.gate.lock();
        visitors.waiting -= 1;
        if let Some(visits) = visitors.by_address.get_mut(&group(self.address)) {
            visits.waiting -= 1;
        }
    }
}

impl Visitors {
    fn may_come(&mut self, limits: &ConnectionLimits, address: IpAddr, now: Instant) -> bool {
        let own_machine = address.to_canonical().is_loopback();
        let rate = match limits.connects_per_second {
            Some(rate) => rate,
            None if own_machine => u32::MAX,
            None => CONNECTS_PER_SECOND,
        };
        let full = u64::from(rate) * u64::from(BURST_SECONDS) * 1_000;
        self.forget_idle(now);
        let visits = self.by_address.entry(group(address)).or_insert_with(|| Visits {
            places: Arc::new(Semaphore::new(if own_machine {
                limits.pending_max
            } else {
                limits.pending_per_address_max
            })),
            waiting: 0,
            tokens: full,
            counted: now,
        });
        let passed = now.saturating_duration_since(visits.counted).as_millis();
        let gained = u64::try_from(passed)
            .unwrap_or(u64::MAX)
            .saturating_mul(rate.into());
        visits.tokens = visits.tokens.saturating_add(gained).min(full);
        visits.counted = now;
        let may = visits.tokens >= 1_000;
        visits.tokens -= if may { 1_000 } else { 0 };
        may
    }

    /// Makes room for another address: those that nobody is unknown of and that have not come for a while are forgotten.
    fn forget_idle(&mut self, now: Instant) {
        if self.by_address.len() < ADDRESSES_MAX {
            return;
        }
        let rest = Duration::from_secs(BURST_SECONDS.into());
        self.by_address.retain(|_, visits| {
            let busy = visits.waiting > 0 || Arc::strong_count(&visits.places) > 1;
            busy || now.saturating_duration_since(visits.counted) < rest
        });
        while self.by_address.len() >= ADDRESSES_MAX {
            // So many at once that somebody's rate is forgotten; the places are limited all the same.
            let idle = |visits: &Visits| visits.waiting == 0;
            let oldest = self.by_address.iter().filter(|(_, visits)| idle(visits));
            let Some(oldest) = oldest
                .min_by_key(|(_, visits)| visits.counted)
                .map(|(key, _)| *key)
            else {
                return;
            };
            self.by_address.remove(&oldest);
        }
    }

    fn wait(&mut self, address: IpAddr) -> Option<Arc<Semaphore>> {
        let visits = self.by_address.get_mut(&group(address))?;
        if self.waiting >= WAITING_MAX || visits.waiting >= WAITING_PER_ADDRESS_MAX {
            return None;
        }
        self.waiting += 1;
        visits.waiting += 1;
        Some(Arc::clone(&visits.places))
    }
}

/// What counts as one address: of IPv6 a /64, which is what one customer has.
pub(crate) fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[tokio::test(start_paused = true)]
    async fn one_address_takes_eight_places_and_all_together_sixty_four() {
        let gate = Gate::new(ConnectionLimits::default(), 10_000);
        let mut pending = Vec::new();
        let mut open = Vec::new();
        for host in 1..=9 {
            let host = address(&format!("192.0.2.{host}"));
            for number in 0..9 {
                open.push(gate.knock(host, Instant::now()).expect("not too often"));
                let place = gate.place(host).await;
                assert_eq!(
                    place.is_some(),
                    number < 8 && pending.len() < 64,
                    "{host} {number}"
                );
                pending.extend(place);
            }
        }
        assert_eq!(pending.len(), 64);
        pending.clear();
        assert!(gate.place(address("192.0.2.9")).await.is_some());
        drop(open);
        let visitors = gate.lock();
        assert_eq!((visitors.open, visitors.waiting), (0, 0));
    }

    #[test]
    fn an_address_comes_so_often_and_no_oftener() {
        let gate = Gate::new(ConnectionLimits::default(), 10_000);
        let start = Instant::now();
        let count = |host: &str, at: Duration| {
            let knock = |_: &usize| gate.knock(address(host), start + at).is_some();
            (0..1_000).take_while(knock).count()
        };
        assert_eq!(count("192.0.2.1", Duration::ZERO), 200);
        assert_eq!(count("192.0.2.1", Duration::from_secs(1)), 20);
        assert_eq!(
            count("::ffff:192.0.2.1", Duration::from_secs(1)),
            0,
            "the same address"
        );
        assert_eq!(count("2001:db8::1", Duration::ZERO), 200);
        assert_eq!(count("2001:db8::2:1", Duration::ZERO), 0, "the same /64");
        assert_eq!(count("127.0.0.1", Duration::ZERO), 1_000);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let gate = Gate::new(ConnectionLimits::default(), 10);
        for host in 0..10_000_u32 {
            let host = std::net::Ipv4Addr::from_bits(0xC000_0000 + host);
            assert!(gate.knock(host.into(), Instant::now()).is_some());
        }
        assert!(gate.lock().by_address.len() <= ADDRESSES_MAX);
        let held: Vec<_> = (0..20)
            .map_while(|_| gate.knock(address("127.0.0.1"), Instant::now()))
            .collect();
        assert_eq!(held.len(), 10, "one descriptor a connection");
    }
}
