//! Executing a plan.

mod control;
mod frame;
mod stack;

pub(crate) use frame::{Frame, Frames};

use std::time::Instant;

use heirloom_mem::Ledger;
use heirloom_types::Value;

use crate::budget::Budget;
use crate::plan::{Block, Constant, Label, ResultRef, Step, Work};
use crate::{CachePolicy, CancelToken, InputRef, KernelError, Profile, RunCx, Team};

/// What all steps of a call share.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    pub constants: &'a [Constant],
    pub ledger: &'a Ledger,
    pub team: &'a dyn Team,
    pub cancel: &'a CancelToken,
    pub cache: CachePolicy,
    pub profile: Option<&'a Profile>,
    pub budget: Option<&'a Budget>,
}

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Fault {
    pub label: Label,
    pub error: KernelError,
}

/// Runs the steps of `block`; its parameters are in their slots. Leaves the results in theirs.
pub(crate) fn run_block(env: &Env<'_>, frame: &mut Frame, block: &Block) -> Result<(), Box<Fault>> {
    for step in &block.steps {
        let start = env.profile.map(|_| Instant::now());
        run_step(env, frame, step)?;
        if let (Some(profile), Some(start)) = (env.profile, start) {
            profile.add(&step.label, start.elapsed());
        }
    }
    Ok(())
}

fn run_step(env: &Env<'_>, frame: &mut Frame, step: &Step) -> Result<(), Box<Fault>> {
    let fault = |error: KernelError| Box::new(Fault { label: step.label.clone(), error });
    if env.cancel.is_cancelled() {
        return Err(fault(crate::Cancelled.into()));
    }
    if let Some(budget) = env.budget {
        budget.step().and_then(|()| budget.memory(env.ledger, 0)).map_err(fault)?;
    }
    match &step.work {
        Work::Kernel(kernel) => {
            let mut cx = RunCx {
                inputs: &step.inputs,
                last_use: step.last_use,
                values: &mut frame.values,
                constants: env.constants,
                outputs: &mut frame.staged[..step.outputs.len()],
                targets: &step.outputs,
                pool: &mut frame.pool,
                ledger: env.ledger,
                team: env.team,
                cancel: env.cancel,
                cache: env.cache,
                budget: env.budget,
            };
            kernel.run(&mut cx).map_err(fault)?;
        }
        control => control::run(env, frame, step, control)?,
    }
    for &slot in &step.frees {
        frame.free(slot);
    }
    for (index, target) in step.outputs.iter().enumerate() {
        let value = frame.staged[index].take();
        match (target, value) {
            (Some(slot), Some(value)) => frame.values[*slot as usize] = Some(value),
            (Some(_), None) => return Err(fault(KernelError::OutputNotSet { index })),
            (None, Some(value)) => frame.recycle(value),
            (None, None) => {}
        }
    }
    Ok(())
}

/// The value that `from` names.
pub(crate) fn read<'a>(env: &Env<'a>, frame: &'a Frame, from: InputRef) -> Option<&'a Value> {
    match from {
        InputRef::Slot(slot) => frame.values[slot as usize].as_ref(),
        InputRef::Constant(at) => env.constants.get(at as usize).map(|constant| constant.get(env.ledger)),
    }
}

/// A result of a block that ran, moved where the block owns it.
pub(crate) fn result(constants: &[Constant], frame: &mut Frame, result: ResultRef) -> Option<Value> {
    match result.from {
        InputRef::Slot(slot) if result.take => frame.values[slot as usize].take(),
        InputRef::Slot(slot) => frame.values[slot as usize].clone(),
        InputRef::Constant(at) => constants.get(at as usize).map(|constant| constant.value().clone()),
    }
}
