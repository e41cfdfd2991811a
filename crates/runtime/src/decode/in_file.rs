//! The decoder that a declaration brings, as a plan over one value.

use std::sync::Arc;
use std::time::Instant;

use heirloom_graph::Function;
use heirloom_mem::{Ledger, Tensor, element_count};
use heirloom_types::{Catalogue, EncodedValue, FunctionProto, TensorType, Value};

use super::DecodeError;
use crate::budget::Budget;
use crate::declared::layout_text;
use crate::exec::{self, Env, Frame};
use crate::plan::{Plan, lower};
use crate::{CachePolicy, CancelToken, DecoderLimits, KernelError, KernelRegistry, Team};

/// A decoder bound to kernels and to one value. Nothing ran to make it.
pub(super) struct InFile {
    plan: Plan,
    value: String,
    ty: String,
    records: usize,
    logical: TensorType,
    limits: DecoderLimits,
}

impl InFile {
    pub(super) fn new(
        registry: &KernelRegistry,
        value: &Arc<EncodedValue>,
        decoder: &FunctionProto,
        limits: DecoderLimits,
    ) -> Result<InFile, DecodeError> {
        let (name, ty) = (value.name.clone(), layout_text(&value.layout));
        let (Some(logical), Some(records)) = (value.logical.clone(), value.record_count()) else {
            return Err(DecodeError::NoLogicalType { value: name, ty });
        };
        let function = Function::from_proto(decoder, &Catalogue::new())
            .map_err(|source| DecodeError::Malformed { ty: ty.clone(), source: Box::new(source) })?;
        let (inputs, outputs) = (function.body().inputs().len(), function.body().outputs().len());
        if (inputs, outputs) != (1, 1) {
            return Err(DecodeError::Signature { ty, inputs, outputs });
        }
        let input = (Arc::from(&*name), Value::Encoded(value.clone()));
        let plan = lower::decoder_plan(&function, registry, input)
            .map_err(|source| DecodeError::Bind { ty: ty.clone(), source: Box::new(source) })?;
        Ok(InFile { plan, value: name, ty, records, logical, limits })
    }

    pub(super) fn run(
        &self,
        ledger: &Ledger,
        team: &dyn Team,
        cancel: &CancelToken,
    ) -> Result<Tensor, DecodeError> {
        ledger.count_decoder_run();
        let mut frame = Frame::default();
        frame.prepare(&self.plan);
        let own = frame.ledger.clone();
        let budget = Budget::new(self.limits.steps, self.limits.bytes);
        let deadline = Instant::now().checked_add(self.limits.time);
        let token = deadline.map_or_else(|| cancel.clone(), |deadline| cancel.with_deadline(deadline));
        let env = Env {
            constants: &self.plan.constants,
            ledger: &own,
            team,
            cancel: &token,
            cache: CachePolicy::default(),
            profile: None,
            budget: Some(&budget),
        };
        let ran = exec::run_block(&env, &mut frame, &self.plan.root);
        let result = ran.map(|()| exec::result(&self.plan.constants, &mut frame, self.plan.root.results[0]));
        ledger.add(own.counts());
        match result {
            Ok(value) => self.check(value),
            Err(fault) => Err(self.failed(*fault, cancel)),
        }
    }

    fn failed(&self, exec::Fault { label, error }: exec::Fault, cancel: &CancelToken) -> DecodeError {
        let (value, ty, node) = (self.value.clone(), self.ty.clone(), label.name.to_string());
        match error {
            KernelError::Cancelled(_) if cancel.is_cancelled() => DecodeError::Cancelled { value },
            KernelError::Cancelled(_) => DecodeError::Time { value, ty, node, limit: self.limits.time },
            source => {
                DecodeError::Node { value, ty, node, op: label.op.to_string(), source: Box::new(source) }
            }
        }
    }

    /// The result in the logical shape, if it is exactly of the logical type.
    fn check(&self, result: Option<Value>) -> Result<Tensor, DecodeError> {
        let (value, ty) = (self.value.clone(), self.ty.clone());
        let tensor = match result {
            Some(Value::Tensor(tensor)) => tensor,
            other => {
                let actual = other.as_ref().map_or("nothing", Value::kind);
                return Err(DecodeError::Kind { value, ty, actual });
            }
        };
        if tensor.dtype() != self.logical.dtype {
            let (expected, actual) = (self.logical.dtype, tensor.dtype());
            return Err(DecodeError::DType { value, ty, expected, actual });
        }
        let fills = element_count(&self.logical.shape) == Some(tensor.len());
        let by_record = tensor.shape().len() == 2 && tensor.shape()[0] == self.records;
        if !(fills && by_record) {
            let (logical, actual) = (Vec::from(&self.logical.shape[..]), Vec::from(tensor.shape()));
            return Err(DecodeError::Shape { value, ty, records: self.records, logical, actual });
        }
        tensor.reshape(&self.logical.shape).map_err(|error| DecodeError::Node {
            value,
            ty,
            node: String::new(),
            op: "Reshape".into(),
            source: Box::new(KernelError::from(error)),
        })
    }
}
