//! The cache: its blocks as they are, and the next cache.

use std::sync::Arc;

use heirloom_mem::{AppendBuffer, DType, Shape, Tensor};
use heirloom_runtime::{KernelError, RunCx};
use heirloom_types::{Codec, EncodedValue, Layout, StructValue, TensorType, Value};

use super::policy::{Policy, Target};
use super::rows::{Heads, Rows};
use crate::real::Real;

/// The keys or the values of a block, [batch, heads, tokens, size].
pub(super) enum Part {
    Dense(Tensor),
    /// The codec is that of records; affine codes need none.
    Encoded(Arc<EncodedValue>, Option<Arc<dyn Codec>>),
}

pub(super) struct Block {
    pub(super) keys: Part,
    pub(super) values: Part,
    /// The number of its first token.
    pub(super) start: usize,
    /// Tokens that are valid.
    pub(super) length: usize,
    value: Value,
}

pub(super) struct Cache {
    pub(super) blocks: Vec<Block>,
    pub(super) length: usize,
}

fn other<T>(text: String) -> Result<T, KernelError> {
    Err(KernelError::Other(text))
}

fn field<'a>(value: &'a Value, place: &str, name: &str) -> Result<&'a Value, KernelError> {
    let Value::Struct(fields) = value else {
        return other(format!("{place} is a {}, not a struct", value.kind()));
    };
    fields.field(name).map_or_else(|| other(format!("{place} has no field `{name}`")), Ok)
}

fn count(value: &Value, place: &str, name: &str) -> Result<usize, KernelError> {
    let field = field(value, place, name)?;
    let number = match field {
        Value::Tensor(tensor) if tensor.len() == 1 => tensor.as_slice::<i64>().ok().map(|number| number[0]),
        _ => None,
    };
    match number.map(usize::try_from) {
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) => other(format!("`{name}` of {place} is negative")),
        None => other(format!("`{name}` of {place} is no INT64 scalar")),
    }
}

impl Cache {
    /// The cache that `value` is, if it goes with the new keys and values.
    pub(super) fn read(value: &Value, new: &Heads) -> Result<Cache, KernelError> {
        let length = count(value, "the cache", "length")?;
        let blocks = match field(value, "the cache", "blocks")? {
            Value::Sequence(blocks) => blocks,
            other_value => {
                return other(format!("`blocks` of the cache is a {}, not a sequence", other_value.kind()));
            }
        };
        let (mut read, mut codecs, mut at) = (Vec::with_capacity(blocks.len() + 1), Codecs::default(), 0);
        for (index, block) in blocks.iter().enumerate() {
            let place = format!("block {index}");
            let (start, length) = (count(block, &place, "start")?, count(block, &place, "length")?);
            if start != at {
                return other(format!("{place} begins with token {start}; the blocks before it hold {at}"));
            }
            let keys = Part::read(field(block, &place, "keys")?, &new.keys, &mut codecs, &place, "keys")?;
            let values =
                Part::read(field(block, &place, "values")?, &new.values, &mut codecs, &place, "values")?;
            let tokens = [&keys, &values].map(Part::tokens);
            if length > tokens[0].min(tokens[1]) {
                return other(format!(
                    "{place} has {length} valid tokens, but keys of {} and values of {}",
                    tokens[0], tokens[1]
                ));
            }
            at += length;
            read.push(Block { keys, values, start, length, value: block.clone() });
        }
        if at != length {
            return other(format!("the cache has `length` {length}, and blocks of {at} tokens"));
        }
        Ok(Cache { blocks: read, length })
    }

    /// The longest block, in tokens.
    pub(super) fn longest(&self) -> usize {
        self.blocks.iter().map(|block| block.length).max().unwrap_or(0)
    }

    /// The cache with the new tokens in it, and the blocks that are due in another layout.
    pub(super) fn with<T: Real<Wide = f32>>(
        self,
        cx: &RunCx<'_>,
        new: &Heads,
        policy: &Policy,
    ) -> Result<Value, KernelError> {
        let (tokens, size) = (new.keys.tokens, policy.block_size);
        let mut blocks = self.blocks;
        // What is full before this call has the layout of its age then.
        let full_before = blocks.len() - usize::from(blocks.last().is_some_and(|block| block.is_open(size)));
        let mut at = 0;
        if let Some(tail) = blocks.last_mut().filter(|block| block.is_open(size)) {
            at = tokens.min(size - tail.length);
            if at > 0 {
                tail.append(cx, new, at, size)?;
            }
        }
        while at < tokens {
            let rows = size.min(tokens - at);
            let start = self.length + at;
            blocks.push(Block::new(cx, new, at, rows, (start, size))?);
            at += rows;
        }
        let full = blocks.len() - usize::from(blocks.last().is_some_and(|block| block.is_open(size)));
        for (index, block) in blocks.iter_mut().enumerate().take(full) {
            let before = if index < full_before { policy.tier(index, full_before) } else { None };
            let now = policy.tier(index, full);
            if let Some(tier) = now.filter(|_| now != before) {
                cx.cancel().check()?;
                block.convert(cx, &policy.keys[tier], &policy.values[tier])?;
            }
        }
        let length = i64::try_from(self.length + tokens).unwrap_or(i64::MAX);
        let blocks: Vec<Value> = blocks.into_iter().map(|block| block.value).collect();
        Ok(fields([("blocks", Value::Sequence(Arc::new(blocks))), ("length", Tensor::scalar(length).into())]))
    }
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (name.into(), value)).collect();
    Value::Struct(Arc::new(StructValue { fields }))
}

/// The codecs of the layouts seen so far: blocks of one layout share its handle.
#[derive(Default)]
struct Codecs(Vec<(*const heirloom_types::StructLayout, Arc<dyn Codec>)>);

impl Codecs {
    fn of(&mut self, layout: &Arc<heirloom_types::StructLayout>) -> Option<Arc<dyn Codec>> {
        let key = Arc::as_ptr(layout);
        if let Some((_, codec)) = self.0.iter().find(|(known, _)| *known == key) {
            return Some(codec.clone());
        }
        let codec = heirloom_formats::codec(layout)?;
        self.0.push((key, codec.clone()));
        Some(codec)
    }
}

impl Part {
    fn read(
        value: &Value,
        new: &Rows,
        codecs: &mut Codecs,
        place: &str,
        name: &str,
    ) -> Result<Part, KernelError> {
        let (dtype, shape) = match value {
            Value::Tensor(tensor) => (tensor.dtype(), tensor.shape()),
            Value::Encoded(encoded) => match &encoded.logical {
                Some(logical) => (logical.dtype, &logical.shape[..]),
                None => return other(format!("`{name}` of {place} stands for no tensor")),
            },
            value => return other(format!("`{name}` of {place} is a {}, not a tensor", value.kind())),
        };
        if dtype != new.dtype() {
            return other(format!(
                "`{name}` of {place} stand for {dtype} elements, the new ones are {}",
                new.dtype()
            ));
        }
        match *shape {
            [batch, heads, _, size] if (batch, heads, size) == (new.batch, new.heads, new.size) => {}
            _ => {
                let expected = (new.batch, new.heads, new.size);
                return other(format!(
                    "`{name}` of {place} are {shape:?}; with the new ones they must be [{}, {}, tokens, {}]",
                    expected.0, expected.1, expected.2
                ));
            }
        }
        match value {
            Value::Encoded(encoded) => {
                let codec = match &encoded.layout {
                    Layout::Affine(_) => None,
                    Layout::Struct(layout) => match codecs.of(layout) {
                        Some(codec) => Some(codec),
                        None => {
                            let ty = &layout.declaration;
                            return other(format!("`{name}` of {place}: no codec is registered for {ty}"));
                        }
                    },
                };
                Ok(Part::Encoded(encoded.clone(), codec))
            }
            Value::Tensor(tensor) => Ok(Part::Dense(tensor.clone())),
            _ => unreachable!("matched above"),
        }
    }

    /// Tokens that there is room for, valid or not.
    fn tokens(&self) -> usize {
        match self {
            Part::Dense(tensor) => tensor.shape()[2],
            Part::Encoded(value, _) => value.logical.as_ref().map_or(0, |logical| logical.shape[2]),
        }
    }

    /// The first `out.len() / size` tokens of head `head` (of all batch entries) of `heads` as f32.
    pub(super) fn read_head<T: Real<Wide = f32>>(
        &self,
        (heads, head): (usize, usize),
        size: usize,
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        match self {
            Part::Dense(tensor) => {
                let mut to = out.iter_mut();
                tensor.block_parts::<T>(heads, head, |part| {
                    // `zip` asks its first side first: `to` loses nothing to a part that ends.
                    part.iter().zip(&mut to).for_each(|(from, to)| *to = from.widen());
                })?;
                Ok(())
            }
            Part::Encoded(value, codec) => value
                .decode_range(codec.as_deref(), head * self.tokens() * size, out)
                .map_err(|error| KernelError::Other(error.to_string())),
        }
    }

    fn value(&self) -> Value {
        match self {
            Part::Dense(tensor) => Value::Tensor(tensor.clone()),
            Part::Encoded(value, _) => Value::Encoded(value.clone()),
        }
    }

    /// In another layout: itself where it has it already, or the layout cannot hold it.
    fn converted<T: Real<Wide = f32>>(
        &self,
        cx: &RunCx<'_>,
        target: &Target,
    ) -> Result<Option<Part>, KernelError> {
        let (dtype, shape) = match self {
            Part::Dense(tensor) => (tensor.dtype(), Shape::from_slice(tensor.shape())),
            Part::Encoded(value, _) if target.is(&value.layout) => return Ok(None),
            Part::Encoded(value, _) => match &value.logical {
                Some(logical) => (logical.dtype, Shape::from_slice(&logical.shape)),
                None => return Ok(None),
            },
        };
        if matches!(target, Target::Exact) {
            return Ok(None);
        }
        let (heads, head) = (shape[0] * shape[1], shape[2] * shape[3]);
        let mut values = vec![0.0; heads * head];
        for (at, to) in values.chunks_exact_mut(head.max(1)).enumerate() {
            self.read_head::<T>((heads, at), shape[3], to)?;
        }
        let encoded = target.encode(&values, &TensorType { dtype, shape }, cx.ledger());
        Ok(encoded.map(|encoded| {
            let codec = target.codec();
            Part::Encoded(Arc::new(encoded), codec)
        }))
    }
}

impl Block {
    /// Whether new tokens can go into it.
    fn is_open(&self, block_size: usize) -> bool {
        let appendable =
            |part: &Part| matches!(part, Part::Dense(tensor) if tensor.shape()[2] == self.length);
        self.length < block_size && appendable(&self.keys) && appendable(&self.values)
    }

    /// Tokens `at..at + rows` of the new ones in a block of their own with room for `size`.
    fn new(
        cx: &RunCx<'_>,
        new: &Heads,
        at: usize,
        rows: usize,
        (start, size): (usize, usize),
    ) -> Result<Block, KernelError> {
        let part = |new: &Rows| -> Result<Part, KernelError> {
            let row = new.size * new.dtype().payload_bytes(1).unwrap_or(0);
            let mut view =
                AppendBuffer::with_capacity(new.batch * new.heads, size, row, cx.ledger())?.claim(rows)?;
            fill(&mut view, new, at, rows);
            Ok(Part::Dense(cx.commit(view, new.dtype(), &[new.batch, new.heads], &[new.size])?))
        };
        let mut block = Block {
            keys: part(&new.keys)?,
            values: part(&new.values)?,
            start,
            length: rows,
            value: Value::Optional(None),
        };
        block.renew();
        Ok(block)
    }

    /// The first `rows` of the new tokens behind those that are there.
    fn append(&mut self, cx: &RunCx<'_>, new: &Heads, rows: usize, size: usize) -> Result<(), KernelError> {
        for (part, new) in [(&mut self.keys, &new.keys), (&mut self.values, &new.values)] {
            let Part::Dense(tensor) = &*part else { continue };
            let mut slot = cx.append_within(tensor, 2, rows, size)?;
            fill(&mut slot, new, 0, rows);
            *part = Part::Dense(cx.commit(slot, new.dtype(), &[new.batch, new.heads], &[new.size])?);
        }
        self.length += rows;
        self.renew();
        Ok(())
    }

    fn convert(&mut self, cx: &RunCx<'_>, keys: &Target, values: &Target) -> Result<(), KernelError> {
        let mut changed = false;
        for (part, target) in [(&mut self.keys, keys), (&mut self.values, values)] {
            let converted = match part.dtype() {
                DType::Float16 => part.converted::<half::f16>(cx, target)?,
                DType::BFloat16 => part.converted::<half::bf16>(cx, target)?,
                _ => part.converted::<f32>(cx, target)?,
            };
            if let Some(converted) = converted {
                (*part, changed) = (converted, true);
            }
        }
        if changed {
            self.renew();
        }
        Ok(())
    }

    fn renew(&mut self) {
        let number = |n: usize| Value::Tensor(Tensor::scalar(i64::try_from(n).unwrap_or(i64::MAX)));
        self.value = fields([
            ("keys", self.keys.value()),
            ("values", self.values.value()),
            ("start", number(self.start)),
            ("length", number(self.length)),
        ]);
    }
}

impl Part {
    fn dtype(&self) -> DType {
        match self {
            Part::Dense(tensor) => tensor.dtype(),
            Part::Encoded(value, _) => value.logical.as_ref().map_or(DType::Float, |logical| logical.dtype),
        }
    }
}

/// Writes tokens `at..at + rows` of all heads.
fn fill(slot: &mut heirloom_mem::AppendSlot, new: &Rows, at: usize, rows: usize) {
    for batch in 0..new.batch {
        for head in 0..new.heads {
            let tokens = (at..at + rows).map(|token| new.bytes(batch, head, token));
            slot.fill(batch * new.heads + head, tokens);
        }
    }
}

impl Target {
    /// Whether values of this layout have it already.
    fn is(&self, layout: &Layout) -> bool {
        match (self, layout) {
            (Target::Affine { storage, group }, Layout::Affine(affine)) => {
                (affine.storage, affine.block_size) == (*storage, Some(*group))
            }
            (Target::Records { layout: own, .. }, Layout::Struct(layout)) => own.type_id == layout.type_id,
            _ => false,
        }
    }

    fn codec(&self) -> Option<Arc<dyn Codec>> {
        match self {
            Target::Records { format, .. } => Some(Arc::new(*format)),
            _ => None,
        }
    }
}
