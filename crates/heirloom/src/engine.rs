//! What sessions share: kernels and threads.

use std::path::Path;
use std::sync::Arc;

use heirloom_cpu::ClaimTeam;
use heirloom_graph::{Model, OpenOptions};
use heirloom_mem::{Ledger, Tensor};
use heirloom_runtime::{
    CachePolicy, DecodeError, DecodeOptions, DecodedBy, KernelRegistry, Session, SessionError,
    SessionOptions, Team,
};
use heirloom_simd::{Isa, IsaError, Level};
use heirloom_types::EncodedValue;

/// Choices for an [`Engine`].
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineOptions {
    /// Threads that share a call's work, the caller's included; `None` takes all processors that the process may use.
    pub threads: Option<usize>,
}

/// The kernels for this processor and the threads that share a call's work. Sessions of one engine share the threads:
/// a call that finds them at work for another one computes alone.
#[derive(Clone)]
pub struct Engine {
    registry: KernelRegistry,
    team: Arc<dyn Team>,
    isa: Isa,
}

/// Why a model could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is no valid model, or a file that it needs is missing.
    #[error(transparent)]
    Model(#[from] heirloom_graph::Error),
    /// The model cannot be run.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl Engine {
    /// An engine with all kernels.
    ///
    /// # Errors
    /// When `HEIRLOOM_ISA` names no level, or one that this processor lacks.
    pub fn new(options: EngineOptions) -> Result<Engine, IsaError> {
        let isa = Isa::selected()?;
        let registry = KernelRegistry::new()
            .with(heirloom_ops::KERNELS.iter().copied())
            .with(heirloom_cpu::KERNELS.iter().copied());
        let team = Arc::new(ClaimTeam::new(options.threads.unwrap_or_else(ClaimTeam::available)));
        Ok(Engine { registry, team, isa })
    }

    /// The instruction-set level that kernels run at.
    pub fn isa(&self) -> Level {
        self.isa.level()
    }

    /// The proof that the processor has that level, which measurements of it take.
    pub fn instructions(&self) -> Isa {
        self.isa
    }

    /// Threads that share a call's work.
    pub fn threads(&self) -> usize {
        self.team.threads()
    }

    pub(crate) fn team(&self) -> &dyn Team {
        &*self.team
    }

    /// The kernels.
    pub fn registry(&self) -> &KernelRegistry {
        &self.registry
    }

    /// Session options with this engine's threads.
    pub fn session_options(&self) -> SessionOptions {
        SessionOptions { team: self.team.clone(), ..SessionOptions::default() }
    }

    /// Binds a model to the engine's kernels.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn session(&self, model: Arc<Model>, cache: CachePolicy) -> Result<Session, SessionError> {
        Session::new(model, &self.registry, SessionOptions { cache, ..self.session_options() })
    }

    /// The tensor of its logical type that an encoded value stands for, and what decoded it: a codec, else the decoder
    /// that its declaration brings, within the default limits. Other sources and limits:
    /// [`runtime::decode`](crate::runtime::decode).
    ///
    /// # Errors
    /// As [`runtime::decode`](crate::runtime::decode).
    pub fn decode(&self, value: &Arc<EncodedValue>) -> Result<(Tensor, DecodedBy), DecodeError> {
        let options = DecodeOptions { team: self.team.clone(), ..DecodeOptions::default() };
        heirloom_runtime::decode(value, &self.registry, &options, &Ledger::default())
    }

    /// Opens a model file and binds it.
    ///
    /// # Errors
    /// When the file is no valid model or the model cannot be run.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Session, OpenError> {
        let model = Model::open(path, &OpenOptions::default())?;
        Ok(self.session(Arc::new(model), CachePolicy::default())?)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({} threads, {})", self.threads(), self.isa())
    }
}
