//! `If`, `Loop`, `Scan` and `SequenceMap`: blocks over the slots of the same call. Values pass in and out as handles.

use heirloom_mem::{Bytes, DType, Shape, Tensor};
use heirloom_types::Value;
use smallvec::SmallVec;

use super::stack::{slice, stack};
use super::{Env, Fault, Frame, read, result, run_block};
use crate::plan::{Block, ScanSpec, StackType, Step, Work};
use crate::{Cancelled, InputRef, KernelError};

/// Runs a step that holds blocks; its outputs are staged afterwards.
pub(super) fn run(
    env: &Env<'_>,
    frame: &mut Frame,
    step: &Step,
    work: &Work<Block>,
) -> Result<(), Box<Fault>> {
    let mut control = Control { env, frame, step };
    match work {
        Work::If { then, otherwise } => control.branch(then, otherwise),
        Work::Loop { body, carried, stacked } => control.repeat(body, *carried, stacked),
        Work::Scan { body, spec, stacked } => control.scan(body, spec, stacked),
        Work::SequenceMap { body } => control.sequence_map(body),
        Work::Kernel(_) => unreachable!("kernels have no blocks"),
    }
}

/// The condition that a loop's body sees: it runs only while it holds.
fn holds() -> Tensor {
    Tensor::new(DType::Bool, &[], Bytes::from_vec(vec![1u8])).expect("one byte")
}

struct Control<'c, 'a> {
    env: &'c Env<'a>,
    frame: &'c mut Frame,
    step: &'c Step,
}

impl Control<'_, '_> {
    fn fault(&self, error: KernelError) -> Box<Fault> {
        Box::new(Fault { label: self.step.label.clone(), error })
    }

    fn check_cancel(&self) -> Result<(), Box<Fault>> {
        if self.env.cancel.is_cancelled() { Err(self.fault(Cancelled.into())) } else { Ok(()) }
    }

    /// Input `index`, moved where this step is the last to use it, and only once.
    fn input(&mut self, index: usize) -> Option<Value> {
        let from = self.step.inputs.get(index).copied().flatten()?;
        let once = self.step.inputs.iter().filter(|other| **other == Some(from)).count() == 1;
        match from {
            InputRef::Slot(slot) if once && index < 64 && self.step.last_use >> index & 1 == 1 => {
                self.frame.values[slot as usize].take()
            }
            from => read(self.env, self.frame, from).cloned(),
        }
    }

    fn required(&mut self, index: usize) -> Result<Value, Box<Fault>> {
        self.input(index).ok_or_else(|| self.fault(KernelError::MissingInput { index }))
    }

    fn set_param(&mut self, block: &Block, index: usize, value: Option<Value>) {
        match (block.params[index], value) {
            (Some(slot), Some(value)) => self.frame.values[slot as usize] = Some(value),
            (None, Some(value)) => self.frame.recycle(value),
            (_, None) => {}
        }
    }

    fn stage(&mut self, index: usize, value: Option<Value>) {
        match self.step.outputs.get(index) {
            Some(Some(_)) => self.frame.staged[index] = value,
            _ => {
                if let Some(value) = value {
                    self.frame.recycle(value);
                }
            }
        }
    }

    fn condition(&self, value: Option<&Value>, index: usize) -> Result<bool, Box<Fault>> {
        let what = |actual: String| KernelError::InputType {
            index,
            expected: "a BOOL of one element".into(),
            actual,
        };
        match value {
            Some(Value::Tensor(tensor)) if tensor.dtype() == DType::Bool && tensor.len() == 1 => {
                let mut holds = false;
                tensor.for_each_run(|run| holds |= run.first().is_some_and(|&byte| byte != 0));
                Ok(holds)
            }
            Some(Value::Tensor(tensor)) => {
                Err(self.fault(what(format!("{} tensor {:?}", tensor.dtype(), tensor.shape()))))
            }
            Some(other) => Err(self.fault(what(other.kind().into()))),
            None => Err(self.fault(KernelError::MissingInput { index })),
        }
    }

    fn branch(&mut self, then: &Block, otherwise: &Block) -> Result<(), Box<Fault>> {
        let from = self.step.inputs.first().copied().flatten();
        let condition = from.and_then(|from| read(self.env, self.frame, from));
        let block = if self.condition(condition, 0)? { then } else { otherwise };
        run_block(self.env, self.frame, block)?;
        for (index, value) in self.collect(block).into_iter().enumerate() {
            self.stage(index, value);
        }
        Ok(())
    }

    fn collect(&mut self, block: &Block) -> Vec<Option<Value>> {
        block.results.iter().map(|&r| result(self.env.constants, self.frame, r)).collect()
    }

    fn repeat(&mut self, body: &Block, carried: usize, stacked: &[StackType]) -> Result<(), Box<Fault>> {
        let trips = match self.input(0) {
            None => None,
            Some(value) => Some(self.trip_count(&value)?),
        };
        let mut go = match self.input(1) {
            None => true,
            some => self.condition(some.as_ref(), 1)?,
        };
        let mut values = Vec::with_capacity(carried);
        for index in 0..carried {
            values.push(self.input(2 + index));
        }
        let mut stacks: Vec<Vec<Value>> = stacked.iter().map(|_| Vec::new()).collect();
        let mut iteration = 0i64;
        while go && trips.is_none_or(|trips| iteration < trips) {
            self.check_cancel()?;
            self.set_param(body, 0, Some(Tensor::scalar(iteration).into()));
            self.set_param(body, 1, Some(holds().into()));
            for (index, value) in values.drain(..).enumerate() {
                self.set_param(body, 2 + index, value);
            }
            run_block(self.env, self.frame, body)?;
            let mut results = self.collect(body).into_iter();
            let condition = results.next().flatten();
            go = self.condition(condition.as_ref(), 0)?;
            values.extend(results.by_ref().take(carried));
            self.keep(&mut stacks, results)?;
            iteration += 1;
        }
        for (index, value) in values.into_iter().enumerate() {
            self.stage(index, value);
        }
        for (index, (parts, stack_type)) in stacks.into_iter().zip(stacked).enumerate() {
            let whole = self.stacked(parts, stack_type, 0, false)?;
            self.stage(carried + index, Some(whole));
        }
        Ok(())
    }

    fn trip_count(&self, value: &Value) -> Result<i64, Box<Fault>> {
        let trips = value.as_tensor().and_then(|t| t.as_slice::<i64>().ok()).filter(|t| t.len() == 1);
        trips.map(|t| t[0]).ok_or_else(|| {
            let actual = value.kind().to_string();
            self.fault(KernelError::InputType {
                index: 0,
                expected: "an INT64 of one element".into(),
                actual,
            })
        })
    }

    fn keep(
        &self,
        stacks: &mut [Vec<Value>],
        values: impl Iterator<Item = Option<Value>>,
    ) -> Result<(), Box<Fault>> {
        for (index, (parts, value)) in stacks.iter_mut().zip(values).enumerate() {
            parts.push(value.ok_or_else(|| self.fault(KernelError::OutputNotSet { index }))?);
        }
        Ok(())
    }

    fn stacked(
        &mut self,
        parts: Vec<Value>,
        empty: &StackType,
        axis: i64,
        reverse: bool,
    ) -> Result<Value, Box<Fault>> {
        stack(parts, empty, axis, reverse, &mut self.frame.pool, self.env.ledger).map_err(|e| self.fault(e))
    }

    fn scan(&mut self, body: &Block, spec: &ScanSpec, stacked: &[StackType]) -> Result<(), Box<Fault>> {
        let first = usize::from(spec.batched);
        let mut values = Vec::with_capacity(spec.carried);
        for index in first..first + spec.carried {
            values.push(self.required(index)?);
        }
        let mut scanned = Vec::with_capacity(spec.input_axes.len());
        for index in first + spec.carried..first + spec.carried + spec.input_axes.len() {
            let Value::Tensor(tensor) = self.required(index)? else {
                return Err(self.fault(KernelError::MissingInput { index }));
            };
            scanned.push(tensor);
        }
        let results = if spec.batched {
            self.samples(body, spec, stacked, &values, &scanned)?
        } else {
            self.sample(body, spec, stacked, values, &scanned)?
        };
        for (index, value) in results.into_iter().enumerate() {
            self.stage(index, value);
        }
        Ok(())
    }

    /// Scans each sample of a batch; their results are stacked along the first axis.
    fn samples(
        &mut self,
        body: &Block,
        spec: &ScanSpec,
        stacked: &[StackType],
        values: &[Value],
        scanned: &[Tensor],
    ) -> Result<Vec<Option<Value>>, Box<Fault>> {
        let carried = values.iter().filter_map(Value::as_tensor).collect::<Vec<_>>();
        let all = || carried.iter().copied().chain(scanned);
        let batch = all().next().and_then(|tensor| tensor.shape().first()).copied().unwrap_or(0);
        if carried.len() != values.len() || all().any(|tensor| tensor.shape().first() != Some(&batch)) {
            return Err(self.fault(KernelError::Shape {
                what: "scanned and carried tensors have one batch in front",
                shapes: all().map(|tensor| Shape::from_slice(tensor.shape())).collect(),
            }));
        }
        let mut results: Vec<Vec<Value>> = Vec::new();
        for at in 0..batch {
            let mut part = |tensor: &Tensor| slice(tensor, 0, at, &mut self.frame.pool, self.env.ledger);
            let values =
                carried.iter().map(|tensor| part(tensor).map(Value::from)).collect::<Result<Vec<_>, _>>();
            let scanned = scanned.iter().map(&mut part).collect::<Result<Vec<_>, _>>();
            let (values, scanned) = (values.map_err(|e| self.fault(e))?, scanned.map_err(|e| self.fault(e))?);
            let sample = self.sample(body, spec, stacked, values, &scanned)?;
            results.resize_with(sample.len(), Vec::new);
            self.keep(&mut results, sample.into_iter())?;
        }
        let none = StackType::default();
        results.into_iter().map(|parts| self.stacked(parts, &none, 0, false).map(Some)).collect()
    }

    /// One scan: the last carried values, and what was stacked.
    fn sample(
        &mut self,
        body: &Block,
        spec: &ScanSpec,
        stacked: &[StackType],
        values: Vec<Value>,
        scanned: &[Tensor],
    ) -> Result<Vec<Option<Value>>, Box<Fault>> {
        let mut values: Vec<Option<Value>> = values.into_iter().map(Some).collect();
        let mut axes: SmallVec<[usize; 4]> = SmallVec::new();
        for (tensor, &axis) in scanned.iter().zip(&spec.input_axes) {
            axes.push(crate::normalize_axis(axis, tensor.shape().len()).map_err(|e| self.fault(e))?);
        }
        let lengths = || scanned.iter().zip(&axes).map(|(tensor, &axis)| tensor.shape()[axis]);
        let length = lengths().next().unwrap_or(0);
        if lengths().any(|other| other != length) {
            return Err(self.fault(KernelError::Shape {
                what: "scanned inputs have one length along their axes",
                shapes: scanned.iter().map(|tensor| Shape::from_slice(tensor.shape())).collect(),
            }));
        }
        let mut stacks: Vec<Vec<Value>> = stacked.iter().map(|_| Vec::with_capacity(length)).collect();
        for at in 0..length {
            self.check_cancel()?;
            for (index, value) in values.drain(..).enumerate() {
                self.set_param(body, index, value);
            }
            for (index, (tensor, &axis)) in scanned.iter().zip(&axes).enumerate() {
                let at = if spec.input_reverse[index] { length - 1 - at } else { at };
                let part = slice(tensor, axis, at, &mut self.frame.pool, self.env.ledger);
                let part = part.map_err(|e| self.fault(e))?;
                self.set_param(body, spec.carried + index, Some(part.into()));
            }
            run_block(self.env, self.frame, body)?;
            let mut results = self.collect(body).into_iter();
            values.extend(results.by_ref().take(spec.carried));
            self.keep(&mut stacks, results)?;
        }
        for (index, (parts, stack_type)) in stacks.into_iter().zip(stacked).enumerate() {
            let (axis, reverse) = (spec.output_axes[index], spec.output_reverse[index]);
            values.push(Some(self.stacked(parts, stack_type, axis, reverse)?));
        }
        Ok(values)
    }

    fn sequence_map(&mut self, body: &Block) -> Result<(), Box<Fault>> {
        let mut inputs = Vec::with_capacity(self.step.inputs.len());
        for index in 0..self.step.inputs.len() {
            inputs.push(self.required(index)?);
        }
        let Some(Value::Sequence(first)) = inputs.first().cloned() else {
            let actual = inputs.first().map_or("nothing", Value::kind).to_string();
            return Err(self.fault(KernelError::InputType {
                index: 0,
                expected: "a sequence".into(),
                actual,
            }));
        };
        let mut collected: Vec<Vec<Value>> =
            body.results.iter().map(|_| Vec::with_capacity(first.len())).collect();
        for at in 0..first.len() {
            self.check_cancel()?;
            for (index, input) in inputs.iter().enumerate() {
                let value = match input {
                    Value::Sequence(elements) => elements.get(at).cloned().ok_or_else(|| {
                        self.fault(KernelError::Range {
                            what: "the number of elements of a sequence that is mapped with another",
                            value: elements.len() as i64,
                            low: first.len() as i64,
                            high: first.len() as i64,
                        })
                    })?,
                    whole => whole.clone(),
                };
                self.set_param(body, index, Some(value));
            }
            run_block(self.env, self.frame, body)?;
            let results = self.collect(body);
            self.keep(&mut collected, results.into_iter())?;
        }
        for (index, elements) in collected.into_iter().enumerate() {
            self.stage(index, Some(Value::Sequence(elements.into())));
        }
        Ok(())
    }
}
