//! Lines on their way to stderr: whoever logs waits for nobody, so that no location stands still because nobody reads what
//! the daemon says. What is too much is lost and counted.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes of lines that may wait; as many may be on their way to a reader that does not read.
pub(super) const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// Takes lines; each write is one, or several whole ones. Clones are the same queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Lines have come, or all have been written.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    /// Not yet told of.
    lost: u64,
    /// Lines that were taken out are being written.
    writing: bool,
}

impl Queue {
    /// A queue, and the thread that writes what comes into it; that ends with the process. `lose` is called on it with the
    /// number of lines that were lost, and may log.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn spawn(
        target: impl Write + Send + 'static,
        lose: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Self::default();
        let writer = queue.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writer.write_to(target, lose))?;
        Ok(queue)
    }

    /// Waits until all lines are written, but not for ever: a reader that does not read is not waited for.
    pub(super) fn flush_within(&self, limit: Duration) {
        let state = self.0.lock();
        let busy = |state: &mut State| state.writing || !state.waiting.is_empty();
        // Whether that was in time changes nothing.
        let _ = self.0.changed.wait_timeout_while(state, limit, busy);
    }

    fn write_to(&self, mut target: impl Write, lose: impl Fn(u64)) {
        loop {
            let mut state = self.0.lock();
            state.writing = false;
            self.0.changed.notify_all();
            let nothing = |state: &mut State| state.waiting.is_empty();
            let waited = self.0.changed.wait_while(state, nothing);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            state.writing = true;
            state.waiting_bytes = 0;
            let lines = std::mem::take(&mut state.waiting);
            let lost = std::mem::take(&mut state.lost);
            drop(state);
            for line in lines {
                // There is no place to tell of it.
                let _ = target.write_all(&line);
            }
            let _ = target.flush();
            if lost > 0 {
                lose(lost);
            }
        }
    }
}

impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        if state.waiting_bytes + line.len() > WAITING_BYTES_MAX {
            state.lost += 1;
        } else {
            state.waiting_bytes += line.len();
            state.waiting.push_back(line.to_vec());
            self.0.changed.notify_all();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, SyncSender};

    use super::*;

    /// Takes a line when there is room for it.
    struct Reader(SyncSender<Vec<u8>>);

    impl Write for Reader {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.send(line.to_vec()).map_err(io::Error::other)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A queue, and what a reader with room for so many lines reads: lines, and `lost` with a number.
    fn queue(room: usize) -> (Queue, Receiver<Vec<u8>>) {
        let (lines, read) = mpsc::sync_channel(room);
        let told = lines.clone();
        let lose = move |lines: u64| {
            let _ = told.send(format!("lost {lines}").into_bytes());
        };
        (Queue::spawn(Reader(lines), lose).expect("a thread"), read)
    }

    #[test]
    fn lines_come_in_their_order_and_the_end_waits_for_them() {
        let (queue, read) = queue(1_000);
        let lines: Vec<Vec<u8>> = (0..1_000).map(|line| format!("{line}\n").into_bytes()).collect();
        for line in &lines {
            queue.clone().write_all(line).expect("it is never refused");
        }
        queue.flush_within(Duration::MAX);
        assert_eq!(read.try_iter().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn a_reader_that_does_not_read_holds_nobody_up_and_what_is_lost_is_told() {
        let (mut queue, read) = queue(0);
        let line = vec![b'x'; 1024];
        let kept = WAITING_BYTES_MAX / line.len();
        for _ in 0..3 * kept {
            queue.write_all(&line).expect("it is never refused");
        }
        queue.flush_within(Duration::ZERO);
        // Besides those that wait some were taken out to be written, as many at most.
        let mut came = 0;
        let told = read.iter().find(|read| {
            came += usize::from(*read == line);
            *read != line
        });
        assert!((kept..=2 * kept).contains(&came), "{came}");
        let lost = format!("lost {}", 3 * kept - came);
        assert_eq!(told, Some(lost.into_bytes()));
    }
}
