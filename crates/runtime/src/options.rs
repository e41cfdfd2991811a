//! What a caller may choose for a session and for one call.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{CachePolicy, CancelToken, Inline, Prepack, Profile, Team};

/// What becomes of an encoded initializer that no registered kernel takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decode {
    /// The session is refused, naming the value.
    #[default]
    Off,
    /// A node in front decodes it when a call first needs it: with a registered codec, else with the decoder that its
    /// declaration brings. The decoded tensor is kept as long as the session.
    OnDemand,
}

/// What a decoder that comes with a file may use for one value, before it is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderLimits {
    /// Nodes that it may run, each iteration of a loop counted.
    pub steps: u64,
    /// Bytes that it may allocate. Buffers that are used again count once.
    pub bytes: u64,
    /// Time that it may take.
    pub time: Duration,
}

impl Default for DecoderLimits {
    /// A million steps, 4 GiB, two minutes.
    fn default() -> DecoderLimits {
        DecoderLimits { steps: 1 << 20, bytes: 4 << 30, time: Duration::from_secs(120) }
    }
}

/// Choices for a session.
#[derive(Clone)]
pub struct SessionOptions {
    /// The threads that kernels share work with.
    pub team: Arc<dyn Team>,
    /// How caches grow.
    pub cache: CachePolicy,
    /// What becomes of encoded initializers without a consumer.
    pub decode: Decode,
    /// Whether kernels keep constants in faster arrangements.
    pub prepack: Prepack,
    /// Whether one symbol may stand for different extents in a call: some exporters name dimensions alike that are not.
    pub free_symbols: bool,
    /// What decoders of the file may use.
    pub decoder_limits: DecoderLimits,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            team: Arc::new(Inline),
            cache: CachePolicy::default(),
            decode: Decode::Off,
            prepack: Prepack::Off,
            free_symbols: false,
            decoder_limits: DecoderLimits::default(),
        }
    }
}

impl fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionOptions")
            .field("threads", &self.team.threads())
            .field("cache", &self.cache)
            .field("decode", &self.decode)
            .finish_non_exhaustive()
    }
}

/// Choices for one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions<'a> {
    /// Stops the call from outside.
    pub cancel: Option<&'a CancelToken>,
    /// The outputs that the caller wants; `None` is all of them. What a state retains does not depend on it.
    pub outputs: Option<&'a [&'a str]>,
    /// Collects the time of each node.
    pub profile: Option<&'a Profile>,
}
