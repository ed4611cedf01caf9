//! What a process holds and uses, from `/proc`.

use std::fs;

/// A process that is running.
pub(super) struct Process(u32);

impl Process {
    pub(super) fn new(number: u32) -> Self {
        Self(number)
    }

    /// Files and sockets that it has open.
    pub(super) fn descriptors(&self) -> usize {
        let folder = fs::read_dir(format!("/proc/{}/fd", self.0));
        folder.expect("the process runs").count()
    }

    /// Memory that it has, KiB.
    pub(super) fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// The most memory that it ever had, KiB.
    pub(super) fn resident_kib_highest(&self) -> u64 {
        self.status_kib("VmHWM:")
    }

    fn status_kib(&self, key: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.trim().parse().ok())
            .unwrap_or_else(|| panic!("{status}"))
    }

    /// Processor time that it has used, in hundredths of a second.
    pub(super) fn processor_ticks(&self) -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).expect("the process runs");
        // Behind the name, which may have spaces: state is the third field, user and system time are 14 and 15.
        let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
        let fields = fields.split_whitespace().skip(11).take(2);
        fields.map(|field| field.parse::<u64>().expect("a number")).sum()
    }

    /// Lowers (or raises) the number of descriptors that it may have from now on; what it has it keeps.
    pub(super) fn limit_descriptors(&self, limit: u64) {
        let process = i32::try_from(self.0).expect("a process number");
        let (mut soft, mut hard, nofile) = (0, 0, rlimit::Resource::NOFILE);
        rlimit::prlimit(process, nofile, None, Some((&mut soft, &mut hard))).expect("the process runs");
        rlimit::prlimit(process, nofile, Some((limit, hard)), None).expect("its limit can be set");
    }
}
