//! Taking an input apart; where it has ended, zeros and nothing come.

/// What is left of an input.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.piece(1).first().copied().unwrap_or(0)
    }

    /// The next bytes, at most so many.
    pub(crate) fn piece(&mut self, bytes: usize) -> &'a [u8] {
        let (piece, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        piece
    }

    /// A piece with its length in two bytes (little endian) before it.
    pub(crate) fn sized_piece(&mut self) -> &'a [u8] {
        let length = u16::from_le_bytes([self.byte(), self.byte()]);
        self.piece(length.into())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Up to seven places at which to split so many bytes, ascending: one byte says how many, each other one where.
    pub(crate) fn cuts(&mut self, bytes: usize) -> Vec<usize> {
        let count = self.byte() & 7;
        let mut cuts: Vec<usize> = (0..count)
            .map(|_| usize::from(self.byte()) % (bytes + 1))
            .collect();
        cuts.sort_unstable();
        cuts
    }
}

/// The pieces between these places.
pub(crate) fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut start = 0;
    let ends = cuts.iter().copied().chain([bytes.len()]);
    ends.map(|end| &bytes[std::mem::replace(&mut start, end)..end])
        .collect()
}
