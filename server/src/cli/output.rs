//! What goes to stdout, to stderr, and how long things take.
//!
//! Never `println!`: it panics when the reader has gone. Here a closed pipe becomes [`ReaderGone`], which ends the
//! process quietly (`lockstepd simulate … | head`).

use std::io::{self, BufWriter, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::exit::{Status, WithStatus};

/// Whoever read our stdout does not any more: not a failure.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the output any more")]
pub(crate) struct ReaderGone;

/// Buffered stdout. Dropped without [`Output::finish`], what is still buffered is written if possible.
pub(crate) struct Output(BufWriter<io::Stdout>);

impl Output {
    /// Stdout.
    pub(crate) fn stdout() -> Self {
        Self(BufWriter::with_capacity(1 << 16, io::stdout()))
    }

    /// One line of text.
    ///
    /// # Errors
    /// [`ReaderGone`], or IO.
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> anyhow::Result<()> {
        checked(writeln!(self.0, "{text}"))
    }

    /// Bytes as they are.
    ///
    /// # Errors
    /// [`ReaderGone`], or IO.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        checked(self.0.write_all(bytes))
    }

    /// One JSON object on a line of its own.
    ///
    /// # Errors
    /// [`ReaderGone`], or IO.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        checked(serde_json::to_writer(&mut self.0, value).map_err(io::Error::from))?;
        checked(self.0.write_all(b"\n"))
    }

    /// Writes out what is buffered, for somebody who waits for it.
    ///
    /// # Errors
    /// [`ReaderGone`], or IO.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        checked(self.0.flush())
    }

    /// Writes out what is buffered; call it last.
    ///
    /// # Errors
    /// [`ReaderGone`], or IO.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        checked(self.0.flush())
    }
}

/// One line on stderr; if nobody reads that either, there is nobody to tell.
pub(crate) fn complain(text: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A bar on stderr for `total` steps, once they take longer than a second and if a person looks at a terminal; else
/// nothing at all.
pub(crate) fn progress(total: u64, what: &'static str) -> Progress {
    Progress {
        bar: None,
        wanted: io::stderr().is_terminal() && io::stdout().is_terminal(),
        total,
        what,
        started: std::time::Instant::now(),
    }
}

/// See [`progress`].
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    wanted: bool,
    total: u64,
    what: &'static str,
    started: std::time::Instant,
}

impl Progress {
    /// So many steps are done.
    pub(crate) fn at(&mut self, done: u64) {
        if !self.wanted {
            return;
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        } else if self.started.elapsed() > Duration::from_secs(1) {
            let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
                bar.set_style(style);
            }
            bar.set_message(self.what);
            bar.set_position(done);
            self.bar = Some(bar);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn checked(result: io::Result<()>) -> anyhow::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(ReaderGone.into()),
        other => other
            .map_err(|error| anyhow::anyhow!("stdout: {error}"))
            .with_status(Status::Io),
    }
}
