//! What an operator decides about admission: plain values, wherever they came from.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Who may come in and how (spec 4.5).
#[derive(Clone, Debug)]
pub(crate) struct AdmissionSettings {
    /// Files of public keys in PEM form; none: no ticket is needed. Read again by a reload.
    pub(crate) ticket_keys: Vec<PathBuf>,
    /// The daemon's name in tickets, 1 to 64 bytes.
    pub(crate) audience: String,
    /// How the TCP port is encrypted.
    pub(crate) tls: TlsSettings,
    /// Listen beyond this machine whatever is missing.
    pub(crate) insecure: bool,
    /// How many may be there before anything is known of them.
    pub(crate) limits: ConnectionLimits,
}

/// How a port is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsSettings {
    /// Not at all.
    Off,
    /// By something in front of the daemon, from which all connections come.
    Proxy,
    /// By the daemon; both files are PEM, read again by a reload.
    Files {
        /// The chain, the daemon's own certificate first.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

/// How many connections there may be (spec 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    /// Peers that have not yet said what they want; 16 KiB each, so 1 MiB together.
    pub(crate) pending_max: usize,
    /// Of one address (IPv6: of one /64).
    pub(crate) pending_per_address_max: usize,
    /// Of one address, connects in a second, with ten times as many at once; `None`: 20, and this machine as often as it
    /// likes.
    pub(crate) connects_per_second: Option<u32>,
    /// Connections in all; fewer if the process may have fewer descriptors.
    pub(crate) connections_max: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            pending_max: 64,
            pending_per_address_max: 8,
            connects_per_second: None,
            connections_max: 8_192,
        }
    }
}

impl AdmissionSettings {
    /// Whether the daemon may listen there.
    ///
    /// # Errors
    /// Others can reach it, and there is no ticket key or no TLS; says what to do.
    pub(crate) fn check_address(&self, address: SocketAddr) -> Result<(), String> {
        let loopback = address.ip().to_canonical().is_loopback();
        let (keys, tls) = (!self.ticket_keys.is_empty(), self.tls != TlsSettings::Off);
        let missing = match (keys, tls) {
            _ if loopback || self.insecure => return Ok(()),
            (true, true) => return Ok(()),
            (false, false) => {
                "there is no ticket key and no TLS: give --ticket-key, and --tls-cert with --tls-key (admission.ticketKeys, \
                 tlsCertificate and tlsKey)"
            }
            (false, true) => {
                "there is no ticket key: give --ticket-key (admission.ticketKeys); `lockstepd ticket key` makes one"
            }
            (true, false) => {
                "there is no TLS: give --tls-cert with --tls-key (admission.tlsCertificate and tlsKey), or --tls proxy if \
                 something in front ends it"
            }
        };
        Err(format!(
            "{address}: others can reach it, and {missing}; --insecure does without"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_listens_beyond_this_machine_unprotected() {
        let check = |address: &str, keys: bool, tls: TlsSettings, insecure: bool, expected: Option<&str>| {
            let settings = AdmissionSettings {
                ticket_keys: if keys { vec!["key.pem".into()] } else { Vec::new() },
                audience: "lockstepd".to_owned(),
                tls,
                insecure,
                limits: ConnectionLimits::default(),
            };
            let address = address.parse().expect("an address");
            let refusal = settings.check_address(address).err();
            match expected {
                None => assert_eq!(refusal, None),
                Some(word) => assert!(refusal.is_some_and(|text| text.contains(word)), "{word}"),
            }
        };
        let files = || TlsSettings::Files {
            certificate: "a".into(),
            key: "b".into(),
        };
        for address in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            check(address, false, TlsSettings::Off, false, None);
        }
        for address in ["0.0.0.0:1", "192.0.2.1:1", "[::]:1"] {
            check(
                address,
                false,
                TlsSettings::Off,
                false,
                Some("no ticket key and no TLS"),
            );
            check(address, false, files(), false, Some("no ticket key:"));
            check(address, true, TlsSettings::Off, false, Some("no TLS:"));
            check(address, true, TlsSettings::Proxy, false, None);
            check(address, true, files(), false, None);
            check(address, false, TlsSettings::Off, true, None);
        }
    }
}
