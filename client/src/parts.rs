//! Putting together what comes in parts: a definition or a snapshot.

/// Why parts do not make a whole: the server's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// Another part than the next one of the same whole.
    #[error("part {part} of {parts} where part {expected_part} of {expected_parts} is next")]
    Order {
        /// Which came.
        part: u32,
        /// Of how many.
        parts: u32,
        /// Which is next.
        expected_part: u32,
        /// Of how many.
        expected_parts: u32,
    },
    /// The whole would be larger than allowed.
    #[error("more than {0} bytes in parts")]
    TooLarge(usize),
}

/// A whole that is being put together; memory grows with the parts that arrive.
#[derive(Debug)]
pub(crate) struct Parts {
    bytes: Vec<u8>,
    next: u32,
    count: u32,
    bytes_max: usize,
}

impl Parts {
    /// Begins with the first part.
    pub(crate) fn new(count: u32, bytes_max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            next: 0,
            count,
            bytes_max,
        }
    }

    /// Adds the next part; the whole, when it was the last one.
    pub(crate) fn add(&mut self, part: u32, parts: u32, bytes: &[u8]) -> Result<Option<Vec<u8>>, PartsError> {
        if part != self.next || parts != self.count || part >= parts {
            return Err(PartsError::Order {
                part,
                parts,
                expected_part: self.next,
                expected_parts: self.count,
            });
        }
        if self.bytes.len() + bytes.len() > self.bytes_max {
            return Err(PartsError::TooLarge(self.bytes_max));
        }
        self.bytes.extend_from_slice(bytes);
        self.next += 1;
        Ok((self.next == self.count).then(|| std::mem::take(&mut self.bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_order_and_within_the_limit() {
        let mut parts = Parts::new(2, 5);
        assert_eq!(parts.add(0, 2, b"abc"), Ok(None));
        assert!(matches!(
            parts.add(0, 2, b"abc"),
            Err(PartsError::Order { expected_part: 1, .. })
        ));
        assert!(matches!(parts.add(1, 3, b"abc"), Err(PartsError::Order { .. })));
        assert_eq!(parts.add(1, 2, b"def"), Err(PartsError::TooLarge(5)));
        assert_eq!(parts.add(1, 2, b"de"), Ok(Some(b"abcde".to_vec())));
        assert!(matches!(
            Parts::new(0, 5).add(0, 0, b""),
            Err(PartsError::Order { .. })
        ));
    }
}
