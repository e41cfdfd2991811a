//! Encoded values to dense tensors, when somebody asks for it: [`decode`], a `Decode` node, or a session with
//! [`Decode::OnDemand`](crate::Decode::OnDemand).

mod error;
mod in_file;

pub use error::DecodeError;

use std::sync::{Arc, OnceLock};

use heirloom_graph::{Attributes, Node, ValueId};
use heirloom_mem::{Ledger, Tensor};
use heirloom_types::{EncodedValue, Value};

use crate::declared::layout_text;
use crate::{
    BuildCx, CancelToken, DecoderLimits, Inline, InputFacts, Kernel, KernelError, KernelRegistry, NodeCall,
    NodeInput, RunCx, Team,
};
use in_file::InFile;

/// Where the decoder may come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecodeSource {
    /// A registered codec, else the decoder of the declaration.
    #[default]
    Any,
    /// A registered codec alone: nothing of the file is run.
    Codec,
    /// The decoder of the declaration alone.
    File,
}

/// What decoded a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodedBy {
    /// A registered codec.
    Codec,
    /// The decoder of the declaration.
    File,
}

/// How [`decode`] goes about it.
#[derive(Clone)]
pub struct DecodeOptions {
    /// Where the decoder may come from.
    pub source: DecodeSource,
    /// What a decoder of the file may use.
    pub limits: DecoderLimits,
    /// The threads that kernels share work with.
    pub team: Arc<dyn Team>,
    /// Stops it from outside.
    pub cancel: CancelToken,
}

impl Default for DecodeOptions {
    fn default() -> DecodeOptions {
        DecodeOptions {
            source: DecodeSource::Any,
            limits: DecoderLimits::default(),
            team: Arc::new(Inline),
            cancel: CancelToken::new(),
        }
    }
}

impl std::fmt::Debug for DecodeOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("DecodeOptions");
        shown.field("source", &self.source).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The tensor of its logical type that `value` stands for, and what decoded it. What it took is added to `ledger`.
///
/// The decoder of a declaration is an ordinary graph over standard operators and `ai.heirloom.Field`, run by the
/// kernels of `registry`; of nested types no decoder runs.
///
/// # Errors
/// When there is no decoder, it fails, it exceeds the limits, or what it gives is not exactly of the logical type.
pub fn decode(
    value: &Arc<EncodedValue>,
    registry: &KernelRegistry,
    options: &DecodeOptions,
    ledger: &Ledger,
) -> Result<(Tensor, DecodedBy), DecodeError> {
    let decoder = Decoder::new(registry, value, options.source, options.limits)?;
    let result = match &decoder {
        Decoder::File(decoder) => decoder.run(ledger, &*options.team, &options.cancel)?,
        Decoder::Codec(_) => by_codec(value, registry, options, ledger)?,
    };
    Ok((result, decoder.kind()))
}

fn by_codec(
    value: &Arc<EncodedValue>,
    registry: &KernelRegistry,
    options: &DecodeOptions,
    ledger: &Ledger,
) -> Result<Tensor, DecodeError> {
    let (name, ty) = (value.name.clone(), layout_text(&value.layout));
    let input = NodeInput::Constant(Value::Encoded(value.clone()));
    let call = NodeCall::new(registry, "ai.heirloom.Decode", 1, Attributes::default(), vec![input], 1);
    let Ok(call) = call else { return Err(DecodeError::NoCodec { value: name, ty }) };
    let mut call = call.team(options.team.clone()).cancel(options.cancel.clone());
    let result = call.run(std::iter::empty::<Value>());
    ledger.add(call.counts());
    match result.map(|mut values| values.pop()) {
        Ok(Some(Value::Tensor(tensor))) => Ok(tensor),
        Ok(_) => {
            let source = Box::new(KernelError::OutputNotSet { index: 0 });
            Err(DecodeError::Codec { value: name, ty, source })
        }
        Err(KernelError::Cancelled(_)) => Err(DecodeError::Cancelled { value: name }),
        Err(source) => Err(DecodeError::Codec { value: name, ty, source: Box::new(source) }),
    }
}

/// What decodes one value.
enum Decoder {
    Codec(Box<dyn Kernel>),
    File(Box<InFile>),
}

impl Decoder {
    fn new(
        registry: &KernelRegistry,
        value: &Arc<EncodedValue>,
        source: DecodeSource,
        limits: DecoderLimits,
    ) -> Result<Decoder, DecodeError> {
        let (name, ty) = (value.name.clone(), layout_text(&value.layout));
        if value.logical.is_none() {
            return Err(DecodeError::NoLogicalType { value: name, ty });
        }
        if source != DecodeSource::File
            && let Some(kernel) = registered(registry, value)?
        {
            return Ok(Decoder::Codec(kernel));
        }
        let decoder = value.layout.as_struct().and_then(|layout| layout.declaration.decoder());
        match (source, decoder) {
            (DecodeSource::Codec, _) => Err(DecodeError::NoCodec { value: name, ty }),
            (_, Some(decoder)) => Ok(Decoder::File(Box::new(InFile::new(registry, value, decoder, limits)?))),
            (DecodeSource::File, None) => Err(DecodeError::NoDecoder { value: name, ty }),
            (DecodeSource::Any, None) => Err(DecodeError::Undecodable { value: name, ty }),
        }
    }

    fn kind(&self) -> DecodedBy {
        match self {
            Decoder::Codec(_) => DecodedBy::Codec,
            Decoder::File(_) => DecodedBy::File,
        }
    }
}

/// Decodes one constant of a session, once, at the first call that needs it: by a registered codec, else by the decoder
/// of the file. The tensor is kept.
pub(crate) struct OnDemand(Arc<Once>);

impl OnDemand {
    /// Binds the decoder; nothing is decoded.
    pub(crate) fn new(
        registry: &KernelRegistry,
        value: &Arc<EncodedValue>,
        limits: DecoderLimits,
    ) -> Result<OnDemand, DecodeError> {
        let decoder = Decoder::new(registry, value, DecodeSource::Any, limits)?;
        Ok(OnDemand(Arc::new(Once { decoder, decoded: OnceLock::new() })))
    }

    /// A kernel without inputs of its own that gives the tensor.
    pub(crate) fn kernel(&self) -> Box<dyn Kernel> {
        Box::new(OnDemand(self.0.clone()))
    }
}

/// The kernel of `ai.heirloom.Decode` that is registered for the layout.
fn registered(
    registry: &KernelRegistry,
    value: &Arc<EncodedValue>,
) -> Result<Option<Box<dyn Kernel>>, DecodeError> {
    let logical = value.logical.as_ref();
    let facts = InputFacts {
        name: value.name.clone(),
        constant: Some(Value::Encoded(value.clone())),
        dtype: logical.map(|ty| ty.dtype),
        shape: logical.map(|ty| ty.shape.clone()),
        next: None,
    };
    let node = Node {
        name: String::new(),
        op_type: "Decode".into(),
        domain: "ai.heirloom".into(),
        overload: String::new(),
        inputs: vec![Some(ValueId(0))],
        outputs: vec![Some(ValueId(1))],
        attributes: Attributes::default(),
    };
    let cx = BuildCx { node: &node, opset: 1, inputs: &[Some(facts)] };
    let Some(spec) = registry.choose(&cx) else { return Ok(None) };
    let built = (spec.build)(&cx).map_err(|source| DecodeError::Build {
        value: value.name.clone(),
        ty: layout_text(&value.layout),
        source,
    });
    built.map(Some)
}

struct Once {
    decoder: Decoder,
    decoded: OnceLock<Value>,
}

impl Kernel for OnDemand {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if let Some(value) = self.0.decoded.get() {
            cx.set(0, value.clone());
            return Ok(());
        }
        match &self.0.decoder {
            Decoder::Codec(kernel) => kernel.run(cx)?,
            Decoder::File(decoder) => {
                let tensor = decoder.run(cx.ledger(), cx.team(), cx.cancel()).map_err(|e| match e {
                    DecodeError::Cancelled { .. } => KernelError::Cancelled(crate::Cancelled),
                    other => KernelError::Decode(Box::new(other)),
                })?;
                cx.set(0, tensor);
            }
        }
        if let Some(value) = &cx.outputs[0] {
            // Two calls may decode at the same time; the first one's tensor stays.
            let _ = self.0.decoded.set(value.clone());
        }
        Ok(())
    }
}
