//! Who may not come in whatever their ticket says (spec 10): by ticket subject or address prefix, with an end and a reason,
//! kept in `bans.json` in the data folder.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, anyhow, ensure};
use serde::{Deserialize, Serialize};

/// The file in the data folder.
pub(crate) const FILE_NAME: &str = "bans.json";
/// Bans of a file.
const BANS_MAX: usize = 65_536;
/// Bytes of a file.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// One ban, as the file has it: by `subject` or by `address`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Ban {
    /// Of a ticket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<String>,
    /// An address, or all that begin like it: `192.0.2.0/24`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    /// Unix time in seconds at which it ends; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<u64>,
    /// For people.
    #[serde(default)]
    pub(crate) reason: String,
}

/// All bans, checked, and when each ends; `None`: never. However many there are, to look for somebody takes no longer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bans {
    subjects: BTreeMap<String, Option<u64>>,
    prefixes: BTreeMap<Prefix, Option<u64>>,
}

/// All addresses that begin with these bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Prefix {
    V4(u32, u32),
    V6(u32, u128),
}

impl Bans {
    /// Reads the bans of a data folder; no file, no bans.
    ///
    /// # Errors
    /// A file that cannot be read or understood.
    pub(crate) fn load(data_dir: &Path) -> anyhow::Result<Self> {
        let bans = read_all(data_dir)?;
        Self::check(bans).with_context(|| data_dir.join(FILE_NAME).display().to_string())
    }

    /// Checks these, and keeps them in the data folder instead of those that are there.
    ///
    /// # Errors
    /// A ban that is none; a file that cannot be written, and then what was there stays.
    pub(crate) fn save(data_dir: &Path, bans: Vec<Ban>) -> anyhow::Result<Self> {
        let checked = Self::check(bans.clone())?;
        let path = data_dir.join(FILE_NAME);
        let temporary = data_dir.join(format!(".{FILE_NAME}.tmp"));
        let mut text = serde_json::to_vec_pretty(&bans)?;
        text.push(b'\n');
        let write = || -> std::io::Result<()> {
            let mut file = std::fs::File::create(&temporary)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&temporary, &path)?;
            std::fs::File::open(data_dir)?.sync_all()
        };
        write().with_context(|| path.display().to_string())?;
        Ok(checked)
    }

    /// Whether somebody may not be there at this time.
    pub(crate) fn forbid(&self, subject: &str, address: Option<IpAddr>, unix_seconds: u64) -> bool {
        let lasts = |until: &Option<u64>| until.is_none_or(|until| unix_seconds < until);
        let banned = |prefix: Prefix| self.prefixes.get(&prefix).is_some_and(lasts);
        self.subjects.get(subject).is_some_and(lasts)
            || address.is_some_and(|address| Prefix::all_of(address).any(banned))
    }

    #[cfg(test)]
    fn parse(text: &[u8]) -> anyhow::Result<Self> {
        Self::check(serde_json::from_slice(text)?)
    }

    fn check(bans: Vec<Ban>) -> anyhow::Result<Self> {
        ensure!(bans.len() <= BANS_MAX, "more than {BANS_MAX} bans");
        let mut checked = Self::default();
        for (index, ban) in bans.into_iter().enumerate() {
            let added = match (ban.subject, ban.address) {
                (Some(subject), None) if !subject.is_empty() => {
                    add(&mut checked.subjects, subject, ban.until);
                    Ok(())
                }
                (None, Some(address)) => {
                    Prefix::parse(&address).map(|prefix| add(&mut checked.prefixes, prefix, ban.until))
                }
                _ => Err(anyhow!("either a subject or an address")),
            };
            added.with_context(|| format!("$[{index}]"))?;
        }
        Ok(checked)
    }
}

/// Of two bans of the same the one that ends later holds.
fn add<K: Ord>(bans: &mut BTreeMap<K, Option<u64>>, whom: K, until: Option<u64>) {
    let later = |there: Option<u64>| Some(there?.max(until?));
    bans.entry(whom)
        .and_modify(|there| *there = later(*there))
        .or_insert(until);
}

/// The bans of a data folder as they stand there; no file, no bans.
///
/// # Errors
/// A file that cannot be read or understood.
pub(crate) fn read_all(data_dir: &Path) -> anyhow::Result<Vec<Ban>> {
    let path = data_dir.join(FILE_NAME);
    let mut text = Vec::new();
    match std::fs::File::open(&path) {
        Ok(file) => file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => Err(error),
    }
    .with_context(|| path.display().to_string())?;
    ensure!(
        text.len() as u64 <= FILE_BYTES_MAX,
        "{}: over {FILE_BYTES_MAX} bytes",
        path.display()
    );
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}

impl Prefix {
    /// # Errors
    /// Neither an address nor one with a number of bits that it has.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().with_context(|| format!("{text:?}"))?;
        let width = if address.is_ipv4() { 32_u32 } else { 128 };
        let bits: u32 = bits
            .map_or(Ok(width), str::parse)
            .with_context(|| format!("{text:?}"))?;
        ensure!(bits <= width, "{text:?}: more than {width} bits");
        Ok(match address.to_canonical() {
            // Of an IPv4 address in IPv6 form the last bits are the address.
            canonical @ IpAddr::V4(_) => Self::of(canonical, bits.saturating_sub(width - 32)),
            canonical => Self::of(canonical, bits),
        })
    }

    /// Of an address, its first bits.
    fn of(address: IpAddr, bits: u32) -> Self {
        match address {
            IpAddr::V4(address) => {
                let rest = u32::MAX.checked_shr(bits).unwrap_or(0);
                Self::V4(bits, address.to_bits() & !rest)
            }
            IpAddr::V6(address) => {
                let rest = u128::MAX.checked_shr(bits).unwrap_or(0);
                Self::V6(bits, address.to_bits() & !rest)
            }
        }
    }

    /// All that an address begins with.
    fn all_of(address: IpAddr) -> impl Iterator<Item = Self> {
        let address = address.to_canonical();
        let width = if address.is_ipv4() { 32 } else { 128 };
        (0..=width).map(move |bits| Self::of(address, bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bans_are_by_subject_or_by_prefix_and_end() {
        let bans = Bans::parse(
            br#"[{"subject": "mallory", "reason": "spam"}, {"subject": "bob", "until": 100},
                {"address": "192.0.2.0/24", "until": 100}, {"address": "2001:db8::/32"}, {"address": "198.51.100.7"},
                {"address": "::ffff:203.0.113.128/121"}, {"address": "2001:db9:0:1::/64", "until": 100},
                {"subject": "carol", "until": 100}, {"subject": "carol", "until": 50},
                {"subject": "dave"}, {"subject": "dave", "until": 50}]"#,
        )
        .expect("bans");
        let check = |subject: &str, address: &str, now: u64, expected: bool| {
            let address = Some(address.parse().expect("an address"));
            assert_eq!(
                bans.forbid(subject, address, now),
                expected,
                "{subject} {address:?} at {now}"
            );
        };
        check("ann", "203.0.113.1", 0, false);
        check("mallory", "203.0.113.1", u64::MAX, true);
        check("bob", "203.0.113.1", 99, true);
        check("bob", "203.0.113.1", 100, false);
        check("", "192.0.2.200", 99, true);
        check("", "::ffff:192.0.2.200", 99, true);
        check("", "192.0.3.200", 99, false);
        check("", "192.0.2.200", 100, false);
        check("", "2001:db8:1::1", 0, true);
        check("", "2001:db9::1", 0, false);
        check("", "198.51.100.7", 0, true);
        check("", "198.51.100.8", 0, false);
        check("", "203.0.113.127", 0, false);
        check("", "203.0.113.129", 0, true);
        check("", "2001:db9:0:1:2::3", 99, true);
        check("", "2001:db9:0:2:2::3", 99, false);
        // Of two bans of the same the one that ends later holds.
        check("carol", "203.0.113.1", 99, true);
        check("carol", "203.0.113.1", 100, false);
        check("dave", "203.0.113.1", 99, true);
        let everywhere = Bans::parse(br#"[{"address": "0.0.0.0/0"}]"#).expect("bans");
        assert!(everywhere.forbid("", Some(IpAddr::from([192, 0, 2, 1])), 0));
        assert!(!everywhere.forbid("", Some(IpAddr::from([0; 16])), 0));
    }

    #[test]
    fn a_bad_file_is_refused_with_its_place() {
        let check = |text: &str| assert!(Bans::parse(text.as_bytes()).is_err(), "{text}");
        check("{}");
        check(r#"[{}]"#);
        check(r#"[{"subject": ""}]"#);
        check(r#"[{"subject": "a", "address": "192.0.2.1"}]"#);
        check(r#"[{"address": "192.0.2.1/33"}]"#);
        check(r#"[{"address": "example.org"}]"#);
        check(r#"[{"subject": "a", "untill": 3}]"#);
        assert!(Bans::load(Path::new("/nowhere")).expect("no file, no bans") == Bans::default());
    }
}
