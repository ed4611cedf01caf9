//! A daemon under `strace`, and its system calls one by one in the order of their ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::harness::{HANG, LOCKSTEPD};

/// Calls that change files or send bytes.
const CALLS: &str = "write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,fsync,fdatasync,sync_file_range,\
    ftruncate,truncate,fallocate,rename,renameat,renameat2,link,linkat,openat,creat,unlink,unlinkat,mkdir,mkdirat,rmdir,\
    copy_file_range,sendfile,splice";
/// Bytes of a string that are logged: more than any record or frame of these tests has.
const STRING_BYTES_MAX: &str = "4000000";

/// Threads that may end behind the first one: each has a line of its own at the end of the log.
const THREADS_MAX: usize = 64;

/// One system call. Numbers of lines are times: a call that begins after another has ended has the higher one.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) thread: u32,
    /// As logged, each by itself.
    pub(crate) arguments: Vec<String>,
    /// What it returned; negative: it failed.
    pub(crate) result: i64,
    /// The line at which it was entered.
    pub(crate) start: usize,
    /// The line at which it returned.
    pub(crate) end: usize,
}

/// `strace` around the daemon; the arguments of the daemon are still to be added. The daemon is a direct child, so that
/// signals reach it and its exit status is its own.
pub(crate) fn strace(log: &Path, inject: &[&str]) -> Command {
    let mut command = Command::new("strace");
    command.args([
        "-D",
        "-f",
        "-yy",
        "-xx",
        "-q",
        "-e",
        "signal=kill",
        "--seccomp-bpf",
        "-s",
        STRING_BYTES_MAX,
    ]);
    command.args(["-e", &format!("trace={CALLS}")]);
    for injected in inject {
        command.args(["-e", &format!("inject={injected}")]);
    }
    command.arg("-o").arg(log).arg(LOCKSTEPD).stdin(Stdio::null());
    command
}

/// The calls of a daemon that has ended, waiting until all of them are in the log.
pub(crate) fn calls(log: &Path, process: u32) -> Vec<Call> {
    let process = process.to_string();
    // Short numbers are padded.
    let is_end = |line: &str| {
        let rest = line.strip_prefix(&process).unwrap_or_default();
        rest.starts_with(' ') && rest.trim_start().starts_with("+++ ")
    };
    let start = Instant::now();
    loop {
        let text =
            std::fs::read_to_string(log).expect("strace is installed and may trace: it has made its log");
        if text.ends_with('\n') && text.lines().rev().take(THREADS_MAX).any(is_end) {
            return parse(&text);
        }
        // The tracer is nobody's child here, so its end cannot be waited for but in its log.
        assert!(start.elapsed() < HANG, "strace does not end: {}", log.display());
        std::thread::yield_now();
    }
}

fn parse(text: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    // Thread, the line at which its call began, the beginning.
    let mut unfinished: Vec<(&str, usize, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        if rest.starts_with("+++") || rest.starts_with("---") {
            continue;
        }
        if let Some(beginning) = rest.strip_suffix("<unfinished ...>") {
            unfinished.push((thread, at, beginning.trim_end().to_owned()));
            continue;
        }
        let (start, whole) = if let Some(resumed) = rest.strip_prefix("<... ") {
            let waiting = unfinished.iter().position(|(other, ..)| *other == thread);
            let (_, start, beginning) =
                unfinished.swap_remove(waiting.expect("a call that resumes has begun"));
            let (_, end) = resumed.split_once("resumed>").expect("a resumed call says so");
            (start, beginning + end)
        } else {
            (at, rest.to_owned())
        };
        calls.extend(call(&whole, thread, start, at));
    }
    // Those that were under way when the daemon was killed: nobody knows whether they happened.
    for (thread, start, beginning) in unfinished {
        calls.extend(call(&(beginning + ") = ?"), thread, start, usize::MAX));
    }
    calls.sort_by_key(|call| (call.end, call.start));
    calls
}

/// `name(arguments) = result`; `None` if it had no effect: it failed, or was never entered.
fn call(text: &str, thread: &str, start: usize, end: usize) -> Option<Call> {
    let (head, result) = text
        .rsplit_once(") ")
        .unwrap_or_else(|| panic!("not a call: {text}"));
    let (name, arguments) = head
        .split_once('(')
        .unwrap_or_else(|| panic!("not a call: {text}"));
    let result = result.trim_start().trim_start_matches('=').trim();
    assert!(!text.contains("\"..."), "a string was cut: {name}");
    let number = result.split([' ', '<']).next().unwrap_or_default();
    let result = number.parse().ok().or((number == "?").then_some(i64::MAX))?;
    Some(Call {
        name: name.to_owned(),
        thread: thread.parse().expect("strace numbers threads"),
        arguments: split(arguments),
        result,
        start,
        end,
    })
}

/// Arguments apart, where commas stand outside of strings, lists and descriptions of descriptors.
fn split(arguments: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut quoted, mut before) = (0, false, ' ');
    for character in arguments.chars() {
        match character {
            '"' => quoted = !quoted,
            '<' | '[' | '{' if !quoted => depth += 1,
            // The arrow between a socket's two ends closes nothing.
            '>' if !quoted && before == '-' => {}
            '>' | ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
        before = character;
        let last = parts.last_mut().expect("there is one from the beginning");
        match character {
            ',' if depth == 0 && !quoted => parts.push(String::new()),
            ' ' if last.is_empty() => {}
            _ => last.push(character),
        }
    }
    parts
}

impl Call {
    /// What a descriptor among the arguments stands for: a path, or `TCP:[…]`.
    pub(crate) fn described(&self, argument: usize) -> String {
        let text = self.arguments.get(argument).map_or("", String::as_str);
        let inside = text.split_once('<').map_or("", |(_, rest)| rest);
        String::from_utf8_lossy(&unescape(inside.strip_suffix('>').unwrap_or(inside))).into_owned()
    }

    /// A path among the arguments, taken from the folder that the argument before it describes if there is one.
    pub(crate) fn path(&self, argument: usize) -> PathBuf {
        let path = PathBuf::from(String::from_utf8_lossy(&self.string(argument)).into_owned());
        if path.is_absolute() || argument == 0 {
            return path;
        }
        PathBuf::from(self.described(argument - 1)).join(path)
    }

    /// The bytes that were written or sent: as many as the result says.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.string(1);
        bytes.truncate(usize::try_from(self.result).unwrap_or(0));
        bytes
    }

    /// The same so many lines later.
    pub(crate) fn later(self, lines: usize) -> Self {
        Self {
            start: self.start + lines,
            end: self.end.saturating_add(lines),
            ..self
        }
    }

    /// Whether a file, a folder or a peer may be another afterwards: a look at a file and a wake-up of a thread change
    /// nothing that outlives the process.
    pub(crate) fn leaves_something(&self) -> bool {
        match self.name.as_str() {
            "openat" => {
                let flags = self.arguments.get(2).map_or("", String::as_str);
                flags.contains("O_CREAT") || flags.contains("O_TRUNC")
            }
            "write" => !self.described(0).starts_with("anon_inode:"),
            _ => true,
        }
    }

    /// Whether it had happened when the log ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.end != usize::MAX
    }

    /// All strings of an argument, one behind the other.
    fn string(&self, argument: usize) -> Vec<u8> {
        let text = self.arguments.get(argument).map_or("", String::as_str);
        text.split('"').skip(1).step_by(2).flat_map(unescape).collect()
    }
}

/// `\x41b` → `Ab`
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4);
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if let [b'\\', b'x', high, low, tail @ ..] = rest {
            let digit = |byte: u8| (byte as char).to_digit(16).expect("strace writes hex") as u8;
            bytes.push(digit(*high) * 16 + digit(*low));
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    bytes
}
