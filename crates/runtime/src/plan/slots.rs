//! Registers to slots: a slot is used again as soon as its value is needed no more.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Block, Constant, LBlock, LStep, Operand, Plan, Reg, ResultRef, Step, Work};
use crate::InputRef;

/// The executable form of `root`.
pub(crate) fn assign(root: LBlock, inputs: Vec<u32>, constants: Vec<Constant>) -> Plan {
    let mut slots = Slots::default();
    let outputs = widest(&root);
    let root = slots.block(root);
    Plan { root, inputs, slots: slots.count as usize, outputs, constants }
}

/// The largest number of values that a step stores at once.
fn widest(block: &LBlock) -> usize {
    let of_step = |step: &LStep| {
        let nested = step.work.blocks().map(widest).max().unwrap_or(0);
        step.outputs.len().max(nested)
    };
    block.steps.iter().map(of_step).max().unwrap_or(0)
}

#[derive(Default)]
struct Slots {
    of: FxHashMap<Reg, u32>,
    free: Vec<u32>,
    count: u32,
}

impl Slots {
    fn take(&mut self, reg: Reg) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.of.insert(reg, slot);
        slot
    }

    fn give(&mut self, reg: Reg) -> u32 {
        let slot = self.of.remove(&reg).expect("a register that has a slot");
        self.free.push(slot);
        slot
    }

    fn find(&self, operand: Operand) -> InputRef {
        match operand {
            Operand::Reg(reg) => InputRef::Slot(self.of[&reg]),
            Operand::Constant(at) => InputRef::Constant(at),
        }
    }

    fn block(&mut self, block: LBlock) -> Block {
        let LBlock { params, steps, results } = block;
        let last = last_uses(&steps, &results);
        let kept = steps.len();
        let params: Vec<_> =
            params.into_iter().map(|reg| last.contains_key(&reg).then(|| (reg, self.take(reg)))).collect();
        let mut own: FxHashSet<Reg> = params.iter().flatten().map(|(reg, _)| *reg).collect();
        let mut done = Vec::with_capacity(steps.len());
        for (at, step) in steps.into_iter().enumerate() {
            done.push(self.step(step, at, &last, &mut own));
        }
        let mut seen = FxHashSet::default();
        let mut refs: Vec<_> = results
            .iter()
            .rev()
            .map(|&operand| {
                let take = matches!(operand, Operand::Reg(reg) if own.contains(&reg) && seen.insert(reg));
                ResultRef { from: self.find(operand), take }
            })
            .collect();
        refs.reverse();
        debug_assert!(own.iter().all(|reg| last.get(reg) == Some(&kept)), "what is left is a result");
        own.into_iter().for_each(|reg| {
            self.give(reg);
        });
        Block {
            params: params.into_iter().map(|p| p.map(|(_, slot)| slot)).collect(),
            steps: done,
            results: refs,
        }
    }

    fn step(
        &mut self,
        step: LStep,
        at: usize,
        last: &FxHashMap<Reg, usize>,
        own: &mut FxHashSet<Reg>,
    ) -> Step {
        let LStep { work, inputs, outputs, label } = step;
        let refs: SmallVec<[Option<InputRef>; 4]> =
            inputs.iter().map(|input| input.map(|operand| self.find(operand))).collect();
        let nested = captures(&work);
        // What a nested block reads stays until the step is done, so the block is placed while all is alive.
        let work = work.map(|block| self.block(block));
        let dies = |reg: &Reg, own: &FxHashSet<Reg>| own.contains(reg) && last.get(reg) == Some(&at);
        let mut last_use = 0u64;
        for (index, input) in inputs.iter().enumerate().take(64) {
            if matches!(input, Some(Operand::Reg(reg)) if dies(reg, own) && !nested.contains(reg)) {
                last_use |= 1 << index;
            }
        }
        let mut frees = SmallVec::new();
        let read = inputs.iter().flatten().filter_map(|operand| match operand {
            Operand::Reg(reg) => Some(*reg),
            Operand::Constant(_) => None,
        });
        for reg in read.chain(nested) {
            if dies(&reg, own) {
                own.remove(&reg);
                frees.push(self.give(reg));
            }
        }
        let outputs = outputs
            .into_iter()
            .map(|output| {
                let reg = output.filter(|reg| last.contains_key(reg))?;
                own.insert(reg);
                Some(self.take(reg))
            })
            .collect();
        Step { work, inputs: refs, last_use, frees, outputs, label }
    }
}

/// The step that reads each register last; the number of steps for results.
fn last_uses(steps: &[LStep], results: &[Operand]) -> FxHashMap<Reg, usize> {
    let mut last = FxHashMap::default();
    for (at, step) in steps.iter().enumerate() {
        for operand in step.inputs.iter().flatten() {
            if let Operand::Reg(reg) = operand {
                last.insert(*reg, at);
            }
        }
        for reg in captures(&step.work) {
            last.insert(reg, at);
        }
    }
    for operand in results {
        if let Operand::Reg(reg) = operand {
            last.insert(*reg, steps.len());
        }
    }
    last
}

/// The registers that nested blocks read but do not write, in order of first use.
fn captures(work: &Work<LBlock>) -> Vec<Reg> {
    let mut found = Vec::new();
    for block in work.blocks() {
        let mut written: FxHashSet<Reg> = block.params.iter().copied().collect();
        let mut read = |reg: Reg, written: &FxHashSet<Reg>| {
            if !written.contains(&reg) && !found.contains(&reg) {
                found.push(reg);
            }
        };
        for step in &block.steps {
            for operand in step.inputs.iter().flatten() {
                if let Operand::Reg(reg) = operand {
                    read(*reg, &written);
                }
            }
            captures(&step.work).into_iter().for_each(|reg| read(reg, &written));
            written.extend(step.outputs.iter().flatten());
        }
        for operand in &block.results {
            if let Operand::Reg(reg) = operand {
                read(*reg, &written);
            }
        }
    }
    found
}
