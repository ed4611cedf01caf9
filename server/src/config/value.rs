//! What stands behind a key, checked against it.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use toml::de::DeValue;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use super::keys::Kind;

/// Entries of a list.
const LIST_MAX: usize = 256;

/// A value of one of the kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing was given, and there is no default.
    Unset,
    /// For a boolean.
    Boolean(bool),
    /// For a number.
    Number(u64),
    /// For everything that is written as text.
    Text(String),
    /// For a list of texts.
    List(Vec<String>),
}

impl Value {
    /// As a file says it; paths are relative to `folder`.
    ///
    /// # Errors
    /// What may stand there instead.
    pub(super) fn from_toml(kind: Kind, value: &DeValue<'_>, folder: &Path) -> Result<Self, String> {
        let text = |value: &DeValue<'_>| value.as_str().map(|text| absolute(kind, text, folder));
        let value = match (kind, value) {
            (Kind::Boolean, DeValue::Boolean(value)) => Some(Self::Boolean(*value)),
            (Kind::Number(..), DeValue::Integer(number)) => {
                let number = u64::from_str_radix(number.as_str(), number.radix());
                Some(Self::Number(number.map_err(|_| expected(kind))?))
            }
            (Kind::Paths | Kind::Origins | Kind::Choices(_), DeValue::Array(items)) => items
                .iter()
                .map(|item| text(item.get_ref()))
                .collect::<Option<Vec<String>>>()
                .map(Self::List),
            (Kind::Paths | Kind::Origins | Kind::Choices(_) | Kind::Boolean | Kind::Number(..), _) => None,
            (_, value) => text(value).map(Self::Text),
        };
        value.ok_or_else(|| expected(kind))?.checked(kind)
    }

    /// As a variable of the environment says it: without quotes, lists with commas.
    ///
    /// # Errors
    /// What may stand there instead.
    pub(super) fn from_variable(kind: Kind, text: &str) -> Result<Self, String> {
        let value = match kind {
            Kind::Boolean => text.parse().ok().map(Self::Boolean),
            Kind::Number(..) => text.parse().ok().map(Self::Number),
            Kind::Paths | Kind::Origins | Kind::Choices(_) => {
                let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
                Some(Self::List(items.map(str::to_owned).collect()))
            }
            _ => Some(Self::Text(text.to_owned())),
        };
        value.ok_or_else(|| expected(kind))?.checked(kind)
    }

    /// A default, as it stands in the file.
    pub(super) fn default_of(kind: Kind, text: &str) -> Self {
        if text.is_empty() {
            return Self::Unset;
        }
        let value = DeValue::parse(text).expect("defaults are TOML");
        Self::from_toml(kind, value.get_ref(), Path::new("")).expect("defaults are within their limits")
    }

    /// A text; `None`: nothing is set.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number; `None`: nothing is set.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn checked(self, kind: Kind) -> Result<Self, String> {
        let fits = match (kind, &self) {
            (_, Self::Unset) | (Kind::Boolean, Self::Boolean(_)) => true,
            (Kind::Number(min, max), Self::Number(number)) => (min..=max).contains(number),
            (Kind::Choices(choices), Self::List(items)) => {
                items.iter().all(|item| choices.contains(&item.as_str()))
            }
            (Kind::Choice(choices), Self::Text(text)) => choices.contains(&text.as_str()),
            (Kind::Address, Self::Text(text)) => text.parse::<SocketAddr>().is_ok(),
            (Kind::AddressOrOff, Self::Text(text)) => text == "off" || text.parse::<SocketAddr>().is_ok(),
            (Kind::Path, Self::Text(text)) => !text.is_empty() && !text.contains('\0'),
            (Kind::Text(bytes_min, bytes_max), Self::Text(text)) => {
                (bytes_min..=bytes_max).contains(&text.len())
            }
            (Kind::Filter(bytes_max), Self::Text(text)) => {
                // A word alone would be a module of that name, and a level that is misspelt silence.
                let is_level =
                    |word: &str| word.contains(['=', '[']) || word.trim().parse::<LevelFilter>().is_ok();
                text.len() <= bytes_max && EnvFilter::try_new(text).is_ok() && text.split(',').all(is_level)
            }
            (Kind::Paths, Self::List(items)) => {
                items.len() <= LIST_MAX && items.iter().all(|item| !item.is_empty() && !item.contains('\0'))
            }
            (Kind::Origins, Self::List(items)) => {
                items.len() <= LIST_MAX && items.iter().all(|item| is_origin(item))
            }
            _ => false,
        };
        if fits { Ok(self) } else { Err(expected(kind)) }
    }
}

/// As in a file.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("\"\""),
            Self::Boolean(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| quoted(item)).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}

/// JSON's strings are TOML's too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn absolute(kind: Kind, text: &str, folder: &Path) -> String {
    if matches!(kind, Kind::Path | Kind::Paths) && !text.is_empty() {
        let path: PathBuf = folder.join(text);
        return path.display().to_string();
    }
    text.to_owned()
}

fn expected(kind: Kind) -> String {
    match kind {
        Kind::Boolean => "true or false is expected".to_owned(),
        Kind::Number(min, max) => format!("a whole number from {min} to {max} is expected"),
        Kind::Choice(choices) => format!("one of {} is expected", choices.join(", ")),
        Kind::Choices(choices) => format!("a list of some of {} is expected", choices.join(", ")),
        Kind::Address => "an IP address and a port are expected, like \"127.0.0.1:7777\"".to_owned(),
        Kind::AddressOrOff => {
            "an IP address and a port are expected, like \"127.0.0.1:7780\", or \"off\"".to_owned()
        }
        Kind::Path => "a path is expected".to_owned(),
        Kind::Paths => format!("a list of at most {LIST_MAX} paths is expected"),
        Kind::Text(bytes_min, bytes_max) => format!("a text of {bytes_min} to {bytes_max} bytes is expected"),
        Kind::Filter(bytes_max) => format!(
            "levels are expected, like \"info\" or \"info,lockstepd::session=debug\", in at most {bytes_max} bytes"
        ),
        Kind::Origins => format!(
            "a list of at most {LIST_MAX} origins is expected, as browsers name them: like \"https://admin.example.org\" or \
             \"http://localhost:8080\", in lower case, with nothing after it"
        ),
    }
}

/// Whether a browser may name a page so: scheme and host in lower case, the port only where it is not the scheme's own.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else {
        return false;
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let own_port = match scheme {
        "http" => "80",
        "https" => "443",
        _ => "",
    };
    let of = |text: &str, more: &[u8]| {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || more.contains(&byte);
        !text.is_empty() && text.bytes().all(fits)
    };
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = address.map_or_else(|| of(host, b"-._"), |address| address.parse::<Ipv6Addr>().is_ok());
    let is_port = |port: &str| {
        let number: Option<u16> = port.parse().ok();
        port != own_port && number.is_some_and(|number| number.to_string() == port)
    };
    of(scheme, b"+-.") && is_host && port.is_none_or(is_port)
}
