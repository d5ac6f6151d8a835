use thiserror::Error;

/// Largest Produce frame by default, in bytes (Kafka: `socket.request.max.bytes`).
pub const DEFAULT_MAX_FRAME: usize = 104_857_600;

/// Largest frame of every other API by default, in bytes: no honest request comes near it, and what is
/// not needed should not be held in memory for a stranger.
pub const DEFAULT_MAX_OTHER_FRAME: usize = 2 * 1024 * 1024;

/// API key, API version, correlation id and the length of the client id, which every header has.
const SMALLEST_FRAME: usize = 10;

/// What [`FrameHead`] has consumed of the bytes that the size field counts.
const CONSUMED: usize = 4;

const PRODUCE: i16 = 0;

/// The first 8 bytes of a request: enough to know how much to read, and whether to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes after the size field, as the peer claims; at least 10.
    pub size: usize,
    pub api_key: i16,
    pub api_version: i16,
}

impl FrameHead {
    /// # Errors
    /// [`FrameError::TooSmall`] when the size is negative or cannot hold a request header.
    pub fn parse(head: &[u8; 8]) -> Result<FrameHead, FrameError> {
        let [s0, s1, s2, s3, k0, k1, v0, v1] = *head;
        let size = i32::from_be_bytes([s0, s1, s2, s3]);
        match usize::try_from(size) {
            Ok(bytes) if bytes >= SMALLEST_FRAME => Ok(FrameHead {
                size: bytes,
                api_key: i16::from_be_bytes([k0, k1]),
                api_version: i16::from_be_bytes([v0, v1]),
            }),
            _ => Err(FrameError::TooSmall(size)),
        }
    }
}

/// Largest accepted frames in bytes, the 4 bytes of the size field not counted (as in Kafka).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLimits {
    pub produce: usize,
    pub other: usize,
}

impl Default for FrameLimits {
    fn default() -> Self {
        FrameLimits { produce: DEFAULT_MAX_FRAME, other: DEFAULT_MAX_OTHER_FRAME }
    }
}

impl FrameLimits {
    /// Looks at the size field alone, before anything else has come.
    ///
    /// # Errors
    /// [`FrameError::TooSmall`] when the size is negative or cannot hold a request header,
    /// [`FrameError::Oversized`] when no API may send as much.
    pub fn check_size(&self, size: [u8; 4]) -> Result<(), FrameError> {
        let claimed = i32::from_be_bytes(size);
        let limit = self.produce.max(self.other);
        match usize::try_from(claimed) {
            Ok(size) if size > limit => Err(FrameError::Oversized { size, limit }),
            Ok(size) if size >= SMALLEST_FRAME => Ok(()),
            _ => Err(FrameError::TooSmall(claimed)),
        }
    }

    /// The number of bytes still to read after the head.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`] when the frame is larger than its API may send.
    pub fn check(&self, head: &FrameHead) -> Result<usize, FrameError> {
        let limit = if head.api_key == PRODUCE { self.produce } else { self.other };
        if head.size > limit {
            return Err(FrameError::TooLarge { size: head.size, limit, api_key: head.api_key });
        }
        Ok(head.size - CONSUMED)
    }
}

/// The peer does not speak Kafka's protocol, or wants too much; the connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FrameError {
    #[error("frame size {0} cannot hold a request")]
    TooSmall(i32),
    #[error("frame of {size} bytes is larger than the limit of {limit}")]
    Oversized { size: usize, limit: usize },
    #[error("frame of {size} bytes for API key {api_key} is larger than the limit of {limit}")]
    TooLarge { size: usize, limit: usize, api_key: i16 },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(size: i32, api_key: i16) -> Result<FrameHead, FrameError> {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&size.to_be_bytes());
        bytes[4..6].copy_from_slice(&api_key.to_be_bytes());
        bytes[6..].copy_from_slice(&7i16.to_be_bytes());
        FrameHead::parse(&bytes)
    }

    #[test]
    fn sizes_that_cannot_be() {
        for size in [i32::MIN, -1, 0, 9] {
            assert_eq!(head(size, 3), Err(FrameError::TooSmall(size)));
        }
        assert_eq!(head(10, -3), Ok(FrameHead { size: 10, api_key: -3, api_version: 7 }));
    }

    #[test]
    fn sizes_alone() {
        let limits = FrameLimits { produce: 1000, other: 100 };
        let check = |size: i32| limits.check_size(size.to_be_bytes());
        for size in [i32::MIN, -1, 0, 9] {
            assert_eq!(check(size), Err(FrameError::TooSmall(size)));
        }
        assert_eq!((check(10), check(1000)), (Ok(()), Ok(())));
        assert_eq!(check(1001), Err(FrameError::Oversized { size: 1001, limit: 1000 }));
    }

    #[test]
    fn limits_at_their_edges() {
        let limits = FrameLimits { produce: 1000, other: 100 };
        for (api_key, limit) in [(0, 1000), (1, 100), (18, 100), (999, 100)] {
            let check = |size: usize| limits.check(&head(size as i32, api_key).unwrap());
            assert_eq!(check(limit - 1), Ok(limit - 5));
            assert_eq!(check(limit), Ok(limit - 4));
            assert_eq!(check(limit + 1), Err(FrameError::TooLarge { size: limit + 1, limit, api_key }));
        }
        let largest = head(i32::MAX, 0).unwrap();
        assert!(FrameLimits::default().check(&largest).is_err());
    }
}
