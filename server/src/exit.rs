//! Exit statuses (spec 6) and the errors that carry one.
//!
//! An error without a status ends with [`Status::Failed`]; `nav::Problems` and usage errors with [`Status::BadInput`].

use std::process::ExitCode;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    /// The check or run failed.
    Failed = 1,
    /// Bad usage or bad input.
    BadInput = 2,
    /// A journal is damaged.
    DamagedData = 65,
    /// A disk or a file failed.
    Io = 74,
    /// The configuration or the location was refused.
    Refused = 78,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}

/// An error with the status that the process shall end with.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How to end.
    pub(crate) status: Status,
    /// What happened.
    pub(crate) error: anyhow::Error,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.error)
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// `result.with_status(Status::Io)?`.
pub(crate) trait WithStatus<T> {
    /// Gives an error the status to end with.
    ///
    /// # Errors
    /// The same error, as a [`Failure`].
    fn with_status(self, status: Status) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> WithStatus<T> for Result<T, E> {
    fn with_status(self, status: Status) -> anyhow::Result<T> {
        self.map_err(|error| {
            let error = error.into();
            anyhow::Error::new(Failure { status, error })
        })
    }
}

/// An error that is bad input: `FILE: place: rule`.
pub(crate) fn bad_input(message: impl std::fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Failure {
        status: Status::BadInput,
        error: anyhow::anyhow!("{message}"),
    })
}
