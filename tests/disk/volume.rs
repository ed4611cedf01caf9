//! The file system that a daemon's calls made: what was written, what of it was synced, and what a folder may hold after
//! the power was cut at any moment.
//!
//! Nothing is assumed that POSIX does not promise. An fsync of a file makes its bytes durable, but not its name; a name is
//! made, moved or removed for good by an fsync of its folder. Of what was not synced any part may be on the disk: any
//! subset of writes, in pieces of a sector, or a longer file with zeros where the bytes should be; any subset of names. A
//! rename is whole or not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::trace::Call;

/// Bytes that a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// A folder's content: files and (without bytes) folders by their path.
pub(crate) type Image = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Number of a file or folder.
type Node = usize;

/// The base folder.
const ROOT: Node = 0;

/// What a call did to a file or a folder.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) node: Node,
    pub(crate) change: Change,
    /// The lines of its call.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// See [`Operation`].
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write {
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        length: usize,
    },
    /// Of a folder: names that now mean something else, or nothing.
    Names(Vec<(String, Option<Node>)>),
    Sync,
}

/// What became of an operation that was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    Kept,
    /// Of a write: the file grew, the bytes are zeros.
    Zeros,
    /// Of a write: only the sectors whose bit is set.
    Sectors(u64),
}

#[derive(Clone, Debug)]
enum Content {
    File(Vec<u8>),
    Folder(BTreeMap<String, Node>),
}

/// See the module.
pub(crate) struct Disk {
    base: PathBuf,
    /// As they were before the first call.
    before: Vec<Content>,
    /// As they are behind the last call.
    now: Vec<Content>,
    pub(crate) operations: Vec<Operation>,
}

impl Disk {
    /// The calls on what lies under `base`, which held `image` before, durably.
    pub(crate) fn new(base: &Path, image: &Image, calls: &[Call]) -> Self {
        let before = nodes(image);
        let mut disk = Self {
            base: base.to_owned(),
            now: before.clone(),
            before,
            operations: Vec::new(),
        };
        for call in calls {
            disk.follow(call);
        }
        disk
    }

    /// A file's operations that hold its bytes, and its syncs: by the file, in the order of their ends.
    pub(crate) fn files(&self) -> BTreeMap<Node, Vec<&Operation>> {
        let mut files: BTreeMap<Node, Vec<&Operation>> = BTreeMap::new();
        for operation in &self.operations {
            if matches!(self.now[operation.node], Content::File(_)) {
                files.entry(operation.node).or_default().push(operation);
            }
        }
        files
    }

    /// All bytes of a file.
    pub(crate) fn bytes(&self, node: Node) -> &[u8] {
        match &self.now[node] {
            Content::File(bytes) => bytes,
            Content::Folder(_) => panic!("not a file"),
        }
    }

    /// The folder behind the last call if nothing is lost.
    pub(crate) fn image(&self) -> Image {
        image_of(&self.now)
    }

    /// Operations that had begun at this line and that no sync had made durable.
    pub(crate) fn loose(&self, line: usize) -> Vec<usize> {
        let begun = self.begun(line);
        begun.filter(|at| !self.is_durable(*at, line)).collect()
    }

    /// The folder after a crash at this line: each loose operation has its fate, in the order of [`Disk::loose`].
    pub(crate) fn crashed(&self, line: usize, fates: &[Fate]) -> Image {
        let mut contents = self.before.clone();
        contents.resize(self.now.len(), Content::File(Vec::new()));
        for (content, now) in contents.iter_mut().zip(&self.now).skip(self.before.len()) {
            if matches!(now, Content::Folder(_)) {
                *content = Content::Folder(BTreeMap::new());
            }
        }
        let mut fates = fates.iter();
        for at in self.begun(line) {
            let durable = self.is_durable(at, line);
            let fate = if durable {
                Fate::Kept
            } else {
                *fates.next().expect("one for each")
            };
            let operation = &self.operations[at];
            apply(&mut contents[operation.node], &operation.change, fate);
        }
        image_of(&contents)
    }

    /// Lines just before something changes on the disk: at each, as much as possible has been sent.
    pub(crate) fn moments(&self) -> Vec<usize> {
        let lines = self
            .operations
            .iter()
            .flat_map(|operation| [operation.start, operation.end]);
        let mut moments: Vec<usize> = lines
            .filter(|line| *line != usize::MAX)
            .map(|line| line.saturating_sub(1))
            .collect();
        moments.push(usize::MAX - 1);
        moments.sort_unstable();
        moments.dedup();
        moments
    }

    fn begun(&self, line: usize) -> impl Iterator<Item = usize> {
        let operations = self.operations.iter().enumerate();
        let begun = operations.filter(move |(_, operation)| {
            operation.start <= line && !matches!(operation.change, Change::Sync)
        });
        begun.map(|(at, _)| at)
    }

    fn is_durable(&self, at: usize, line: usize) -> bool {
        let operation = &self.operations[at];
        self.operations.iter().any(|sync| {
            matches!(sync.change, Change::Sync)
                && sync.node == operation.node
                && operation.end < sync.start
                && sync.end <= line
        })
    }

    fn follow(&mut self, call: &Call) {
        match call.name.as_str() {
            "write" | "writev" => self.write(call, None),
            "pwrite64" | "pwritev" | "pwritev2" => self.write(call, Some(3)),
            "fsync" | "fdatasync" => {
                if let Some(node) = self.find(Path::new(&call.described(0))) {
                    self.push(node, Change::Sync, call);
                }
            }
            "ftruncate" => {
                if let Some(node) = self.find(Path::new(&call.described(0))) {
                    let length = call.arguments[1].parse().expect("a length");
                    self.push(node, Change::Truncate { length }, call);
                }
            }
            "openat" => self.open(call),
            "mkdir" => self.make(&call.path(0), Content::Folder(BTreeMap::new()), call),
            "mkdirat" => self.make(&call.path(1), Content::Folder(BTreeMap::new()), call),
            "rename" => self.rename(&call.path(0), &call.path(1), call),
            "renameat" | "renameat2" => self.rename(&call.path(1), &call.path(3), call),
            "unlink" | "rmdir" => self.remove(&call.path(0), call),
            "unlinkat" => self.remove(&call.path(1), call),
            "copy_file_range" | "sendfile" | "splice" => self.copy(call),
            "sendto" | "sendmsg" => {}
            other => {
                let known = |argument| self.place(Path::new(&call.described(argument))).is_none();
                assert!(known(0), "{other} is unknown to the simulated disk");
            }
        }
    }

    fn write(&mut self, call: &Call, offset: Option<usize>) {
        let Some(node) = self.find(Path::new(&call.described(0))) else {
            return;
        };
        // The journal only ever appends; whether that is so is shown by comparing with the real folder at the end.
        let end = self.bytes(node).len();
        let offset = offset.map_or(end, |argument| {
            call.arguments[argument].parse().expect("an offset")
        });
        let bytes = call.bytes();
        self.push(node, Change::Write { offset, bytes }, call);
    }

    /// A tail that is copied aside: the whole rest of one file to the end of the other.
    fn copy(&mut self, call: &Call) {
        let (from, to) = if call.name == "sendfile" { (1, 0) } else { (0, 2) };
        let (from, to) = (call.described(from), call.described(to));
        let (Some(from), Some(to)) = (self.find(Path::new(&from)), self.find(Path::new(&to))) else {
            return;
        };
        let count = usize::try_from(call.result).expect("a count");
        if count > 0 {
            let source = self.bytes(from);
            let bytes = source[source.len() - count..].to_vec();
            let offset = self.bytes(to).len();
            self.push(to, Change::Write { offset, bytes }, call);
        }
    }

    fn open(&mut self, call: &Call) {
        let path = call.path(1);
        let flags = &call.arguments[2];
        if self.place(&path).is_none() {
            return;
        }
        match self.find(&path) {
            None if flags.contains("O_CREAT") => self.make(&path, Content::File(Vec::new()), call),
            Some(node) if flags.contains("O_TRUNC") && !self.bytes(node).is_empty() => {
                self.push(node, Change::Truncate { length: 0 }, call);
            }
            _ => {}
        }
    }

    fn make(&mut self, path: &Path, content: Content, call: &Call) {
        if let Some((folder, name)) = self.place(path) {
            self.now.push(content);
            let node = self.now.len() - 1;
            self.push(folder, Change::Names(vec![(name, Some(node))]), call);
        }
    }

    fn rename(&mut self, from: &Path, to: &Path, call: &Call) {
        let (Some(node), Some((folder, old)), Some((other, new))) =
            (self.find(from), self.place(from), self.place(to))
        else {
            return;
        };
        assert_eq!(folder, other, "a rename between folders has two names to sync");
        self.push(folder, Change::Names(vec![(old, None), (new, Some(node))]), call);
    }

    fn remove(&mut self, path: &Path, call: &Call) {
        if let (Some(_), Some((folder, name))) = (self.find(path), self.place(path)) {
            self.push(folder, Change::Names(vec![(name, None)]), call);
        }
    }

    fn push(&mut self, node: Node, change: Change, call: &Call) {
        apply(&mut self.now[node], &change, Fate::Kept);
        self.operations.push(Operation {
            node,
            change,
            start: call.start,
            end: call.end,
        });
    }

    /// The node of a path under the base.
    fn find(&self, path: &Path) -> Option<Node> {
        let mut node = ROOT;
        for name in path.strip_prefix(&self.base).ok()? {
            let Content::Folder(names) = &self.now[node] else {
                return None;
            };
            node = *names.get(&*name.to_string_lossy())?;
        }
        Some(node)
    }

    /// The folder of a path under the base, and the name there.
    fn place(&self, path: &Path) -> Option<(Node, String)> {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((self.find(path.parent()?)?, name))
    }
}

/// Makes the folder of an image; there must be nothing yet.
pub(crate) fn materialize(image: &Image, folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder");
    for (path, bytes) in image {
        let path = folder.join(path);
        match bytes {
            Some(bytes) => std::fs::write(path, bytes).expect("a file"),
            None => std::fs::create_dir(path).expect("a folder"),
        }
    }
}

/// What a folder holds.
pub(crate) fn look(folder: &Path) -> Image {
    let mut image = Image::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(inside) = waiting.pop() {
        for entry in std::fs::read_dir(folder.join(&inside)).expect("a folder") {
            let name = inside.join(entry.expect("readable").file_name());
            let path = folder.join(&name);
            if path.is_dir() {
                waiting.push(name.clone());
                image.insert(name, None);
            } else {
                image.insert(name, Some(std::fs::read(path).expect("a file")));
            }
        }
    }
    image
}

fn nodes(image: &Image) -> Vec<Content> {
    let mut nodes = vec![Content::Folder(BTreeMap::new())];
    let mut numbers = BTreeMap::from([(PathBuf::new(), ROOT)]);
    for (path, bytes) in image {
        let content = bytes
            .clone()
            .map_or(Content::Folder(BTreeMap::new()), Content::File);
        let parent = numbers[path.parent().expect("a name in the folder")];
        let node = nodes.len();
        nodes.push(content);
        numbers.insert(path.clone(), node);
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if let Content::Folder(names) = &mut nodes[parent] {
            names.insert(name, node);
        }
    }
    nodes
}

fn image_of(contents: &[Content]) -> Image {
    let mut image = Image::new();
    let mut waiting = vec![(PathBuf::new(), ROOT)];
    while let Some((path, node)) = waiting.pop() {
        match &contents[node] {
            Content::File(bytes) => drop(image.insert(path, Some(bytes.clone()))),
            Content::Folder(names) => {
                for (name, inside) in names {
                    waiting.push((path.join(name), *inside));
                }
                if node != ROOT {
                    image.insert(path, None);
                }
            }
        }
    }
    image
}

fn apply(content: &mut Content, change: &Change, fate: Fate) {
    match (content, change, fate) {
        (_, _, Fate::Lost) | (_, Change::Sync, _) => {}
        (Content::File(file), Change::Write { offset, bytes }, fate) => {
            let end = offset + bytes.len();
            if file.len() < end {
                file.resize(end, 0);
            }
            for (at, byte) in (*offset..).zip(bytes) {
                let sector = at / SECTOR_BYTES - offset / SECTOR_BYTES;
                let kept = match fate {
                    Fate::Sectors(kept) => kept >> (sector % 64) & 1 == 1,
                    fate => fate == Fate::Kept,
                };
                if kept {
                    file[at] = *byte;
                }
            }
        }
        (Content::File(file), Change::Truncate { length }, _) => file.resize(*length, 0),
        (Content::Folder(names), Change::Names(changes), _) => {
            for (name, node) in changes {
                match node {
                    Some(node) => drop(names.insert(name.clone(), *node)),
                    None => drop(names.remove(name)),
                }
            }
        }
        (content, change, _) => panic!("{change:?} of {content:?}"),
    }
}
