//! Starts daemons and bots, reads what they print, stops them.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The binary under test, built right before the tests.
pub(crate) const LOCKSTEPD: &str = env!("CARGO_BIN_EXE_lockstepd");

/// How long anything may take before it counts as hung.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// A command line of the binary under test, its input closed.
pub(crate) fn lockstepd(arguments: &[&str]) -> Command {
    let mut command = Command::new(LOCKSTEPD);
    // Tests run side by side; those that want the admin pages ask for a port of their own.
    command.env("LOCKSTEPD_HTTP__LISTEN", "off");
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs it to its end and returns what it printed.
pub(crate) fn run(arguments: &[&str]) -> Output {
    lockstepd(arguments).output().expect("the binary starts")
}

/// Runs it, expects exit status 0 and one JSON object a line on stdout.
pub(crate) fn run_json(arguments: &[&str]) -> Vec<Value> {
    let output = run(arguments);
    assert!(
        output.status.success(),
        "lockstepd {arguments:?}: {}\n{}",
        output.status,
        text(&output.stderr)
    );
    text(&output.stdout)
        .lines()
        .map(|line| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {line}"))
        })
        .collect()
}

/// Bytes a program printed, for a message.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A running daemon; killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its admin pages, if they were asked for.
    pub(crate) http: Option<SocketAddr>,
}

impl Daemon {
    /// Starts `serve --json` on `listen` with its data in `data`, and waits until it says where it listens.
    pub(crate) fn start(data: &Path, listen: &str, more: &[&str]) -> Self {
        Self::start_with(data, listen, more, &[])
    }

    /// The same with variables of the environment.
    pub(crate) fn start_with(data: &Path, listen: &str, more: &[&str], variables: &[(&str, &str)]) -> Self {
        let data = data.to_str().expect("a UTF-8 path");
        let mut command = lockstepd(&["serve", "--json", "--listen", listen, "--data-dir", data]);
        Self::launch(command.args(more).envs(variables.iter().copied()))
            .unwrap_or_else(|status| panic!("it ends before it listens, with {status:?}"))
    }

    /// Starts a command line that is, or runs, `serve --json`, and waits until it says where it listens.
    ///
    /// # Errors
    /// It ends before: its exit status, `None` if a signal ended it.
    pub(crate) fn launch(command: &mut Command) -> Result<Self, Option<i32>> {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("stdout can be read");
        if line.is_empty() {
            return Err(wait(&mut child).code());
        }
        let hello: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        let address = hello["listening"].as_str().and_then(|text| text.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        let http = hello["http"].as_str().and_then(|text| text.parse().ok());
        Ok(Self {
            child,
            stdout,
            address,
            http,
        })
    }

    /// Waits until it has ended by itself; the exit status, `None` if a signal ended it.
    pub(crate) fn ended(mut self) -> Option<i32> {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("stdout can be read");
        wait(&mut self.child).code()
    }

    /// The number of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The same again after a kill, where clients look for it.
    pub(crate) fn restart(self, data: &Path, more: &[&str]) -> Self {
        let listen = self.address.to_string();
        self.kill();
        Self::start(data, &listen, more)
    }

    /// kill -9: no chance to say anything.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the daemon runs");
        self.child.wait().expect("the daemon can be waited for");
    }

    /// SIGTERM; expects exit status 0 and returns the summary.
    pub(crate) fn terminate(mut self) -> Value {
        self.signal("TERM");
        let (status, summary) = self.finish();
        assert_eq!(status, Some(0), "exit status after SIGTERM; summary: {summary}");
        summary
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits for its end; the exit status and the summary.
    pub(crate) fn finish(&mut self) -> (Option<i32>, Value) {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("stdout can be read");
        let status = wait(&mut self.child);
        let last = rest.lines().last().unwrap_or("null");
        (
            status.code(),
            serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {rest:?}")),
        )
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Already gone is fine: this is for a test that failed half way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bots that run beside the test.
pub(crate) struct Bots(Child);

impl Bots {
    /// Starts `bot --json` against a daemon.
    pub(crate) fn start(address: SocketAddr, count: u32, seconds: u32, more: &[&str]) -> Self {
        let mut command = lockstepd(&["bot", "--json", "--connect", &address.to_string()]);
        command.args(["--count", &count.to_string(), "--seconds", &seconds.to_string()]);
        Self::launch(command.args(more))
    }

    /// Starts a command line that is, or runs, `bot --json`.
    pub(crate) fn launch(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        Self(command.spawn().expect("the program starts"))
    }

    /// Waits for their end; the exit status and the summary.
    pub(crate) fn finish(mut self) -> (Option<i32>, Value) {
        let mut printed = String::new();
        let mut stdout = self.0.stdout.take().expect("stdout is piped");
        stdout.read_to_string(&mut printed).expect("stdout can be read");
        let status = wait(&mut self.0);
        let last = printed.lines().last().unwrap_or("null");
        (
            status.code(),
            serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {printed:?}")),
        )
    }
}

impl Drop for Bots {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for an exit, but not for ever.
fn wait(child: &mut Child) -> std::process::ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        // Its output has ended, so it is about to exit; there is no portable wait with a limit.
        assert!(start.elapsed() < HANG, "the process does not end");
        std::thread::yield_now();
    }
}
