//! A definition as it comes: in parts, behind the Welcome that names its hash. What is received otherwise (turns, states
//! or nothing) makes no difference.

use bytes::Bytes;
use protocol::Bundle;
use protocol::bundle::{self, BUNDLE_BYTES_MAX, BundleError};
use protocol::message::{Part, Welcome};
use sim::Definition;

use crate::parts::{Parts, PartsError};

/// The definition of a location, on its way over one connection.
#[derive(Debug)]
pub struct Download {
    hash: [u8; 32],
    parts: Option<Parts>,
}

/// A whole definition.
#[derive(Clone, Debug)]
pub struct Downloaded {
    /// The Welcome's.
    pub hash: [u8; 32],
    /// What it says.
    pub definition: Definition,
    /// The bytes of its bundle, for a desync report.
    pub bundle: Bytes,
}

/// Why what came is not the location's definition.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// Parts that do not fit together.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// It has another hash than the Welcome says.
    #[error("the definition is not the one that the Welcome names")]
    Hash,
    /// It is no bundle.
    #[error("the definition cannot be read: {0}")]
    Bundle(#[from] BundleError),
    /// It breaks a rule.
    #[error("the definition cannot be used: {0}")]
    Definition(nav::Problems),
}

impl Download {
    /// Nothing of it has come yet.
    pub fn new(welcome: &Welcome) -> Self {
        Self {
            hash: welcome.definition,
            parts: None,
        }
    }

    /// Which one it is to be.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// A part has come. The definition, when it was the last one.
    ///
    /// # Errors
    /// It is not the one that was announced, or this build cannot use it.
    pub fn part(&mut self, part: u32, parts: u32, bytes: &Part) -> Result<Option<Downloaded>, DownloadError> {
        let whole = self
            .parts
            .get_or_insert_with(|| Parts::new(parts, BUNDLE_BYTES_MAX))
            .add(part, parts, bytes)?;
        let Some(bytes) = whole else { return Ok(None) };
        self.parts = None;
        if bundle::hash(&bytes) != self.hash {
            return Err(DownloadError::Hash);
        }
        let definition = Bundle::decode(&bytes)?
            .definition("definition")
            .map_err(DownloadError::Definition)?;
        Ok(Some(Downloaded {
            hash: self.hash,
            definition,
            bundle: bytes.into(),
        }))
    }
}
