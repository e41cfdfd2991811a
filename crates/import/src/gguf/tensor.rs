//! The tensors: names, shapes, types and where their data lies.

use std::ops::Range;

use super::cursor::{Cursor, wide};
use super::kind::{self, Kind};
use crate::ImportError;

/// GGUF tensors have at most this many dimensions.
const MOST_DIMS: u32 = 4;

/// One tensor of the file.
#[derive(Debug, Clone)]
pub struct Tensor {
    name: String,
    dims: Vec<u64>,
    kind: Kind,
    start: usize,
    end: usize,
}

impl Tensor {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its dimensions as the file writes them: the innermost, whose elements lie together, first.
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }

    /// Its shape in the order of ONNX: rows before columns.
    pub fn shape(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        self.dims.iter().rev().copied()
    }

    /// Its element type or block format.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Where its data lies, in bytes from the file's start.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// All tensors of a file.
pub(super) struct Tensors {
    list: Vec<Tensor>,
    /// Indexes of `list`, sorted by name.
    by_name: Vec<usize>,
}

impl Tensors {
    /// Reads `count` descriptions; the data follows them at the next multiple of `alignment`.
    pub(super) fn read(cursor: &mut Cursor<'_>, count: u64, alignment: u64) -> Result<Self, ImportError> {
        // No name, no dimensions, a type and an offset.
        cursor.check_count(count, 8 + 4 + 4 + 8, "the tensor descriptions")?;
        let mut described = Vec::new();
        for index in 0..count {
            described.push(describe(cursor, index, alignment)?);
        }
        let data = wide(cursor.at()).checked_next_multiple_of(alignment);
        let mut list = Vec::with_capacity(described.len());
        for (mut tensor, offset, bytes) in described {
            let start = data.and_then(|d| d.checked_add(offset));
            let end = start.and_then(|s| s.checked_add(bytes));
            let place = |at: Option<u64>| usize::try_from(at?).ok().filter(|at| *at <= cursor.size());
            let (Some(from), Some(to)) = (place(start), place(end)) else {
                return Err(ImportError::Truncated {
                    file: cursor.file().into(),
                    what: format!("data of tensor `{}`", tensor.name),
                    offset: start.unwrap_or(u64::MAX),
                    needed: bytes,
                    left: wide(cursor.size()).saturating_sub(start.unwrap_or(u64::MAX)),
                });
            };
            (tensor.start, tensor.end) = (from, to);
            list.push(tensor);
        }
        check_overlap(cursor, &list)?;
        let mut by_name: Vec<usize> = (0..list.len()).collect();
        by_name.sort_by(|a, b| list[*a].name.cmp(&list[*b].name));
        if let Some(pair) = by_name.windows(2).find(|pair| list[pair[0]].name == list[pair[1]].name) {
            return Err(bad(cursor, &list[pair[0]].name, "the name occurs twice".into()));
        }
        Ok(Self { list, by_name })
    }

    pub(super) fn all(&self) -> &[Tensor] {
        &self.list
    }

    pub(super) fn find(&self, name: &str) -> Option<&Tensor> {
        let place = self.by_name.binary_search_by(|i| self.list[*i].name.as_str().cmp(name)).ok()?;
        Some(&self.list[self.by_name[place]])
    }
}

/// One description: the tensor with no place yet, its offset in the data, its size in bytes.
fn describe(cursor: &mut Cursor<'_>, index: u64, alignment: u64) -> Result<(Tensor, u64, u64), ImportError> {
    let what = format!("name of tensor {index}");
    let range = cursor.string(&what)?;
    let name = cursor.text(range, &what)?.to_owned();
    let what = format!("description of tensor `{name}`");
    let rank = cursor.u32(&what)?;
    if rank > MOST_DIMS {
        return Err(bad(
            cursor,
            &name,
            format!("it has {rank} dimensions; at most {MOST_DIMS} are possible"),
        ));
    }
    let dims = (0..rank).map(|_| cursor.u64(&what)).collect::<Result<Vec<u64>, _>>()?;
    let number = cursor.u32(&what)?;
    let offset = cursor.u64(&what)?;
    let Some(kind) = kind::find(number) else {
        return Err(ImportError::UnknownTensorType {
            file: cursor.file().into(),
            tensor: name,
            number,
            name: kind::gguf_name(number),
            known: kind::known(),
        });
    };
    if !offset.is_multiple_of(alignment) {
        let fault = format!("its offset {offset} is no multiple of the alignment {alignment}");
        return Err(bad(cursor, &name, fault));
    }
    let row = dims.first().copied().unwrap_or(1);
    if !row.is_multiple_of(kind.elements) {
        let fault =
            format!("its rows of {row} elements are no whole {} blocks of {}", kind.name, kind.elements);
        return Err(bad(cursor, &name, fault));
    }
    let elements = dims.iter().try_fold(1, |all: u64, dim| all.checked_mul(*dim));
    let bytes = elements.and_then(|e| (e / kind.elements).checked_mul(kind.bytes));
    match bytes.filter(|_| elements.is_some_and(|e| i64::try_from(e).is_ok())) {
        Some(bytes) => Ok((Tensor { name, dims, kind, start: 0, end: 0 }, offset, bytes)),
        None => Err(bad(cursor, &name, format!("its dimensions {dims:?} overflow"))),
    }
}

fn check_overlap(cursor: &Cursor<'_>, list: &[Tensor]) -> Result<(), ImportError> {
    let mut by_place: Vec<&Tensor> = list.iter().filter(|t| t.start < t.end).collect();
    by_place.sort_by_key(|t| t.start);
    match by_place.windows(2).find(|pair| pair[0].end > pair[1].start) {
        Some(pair) => {
            let fault = format!(
                "its data at offset {} overlaps that of `{}`, which ends at {}",
                pair[1].start, pair[0].name, pair[0].end
            );
            Err(bad(cursor, &pair[1].name, fault))
        }
        None => Ok(()),
    }
}

fn bad(cursor: &Cursor<'_>, tensor: &str, fault: String) -> ImportError {
    ImportError::BadTensor { file: cursor.file().into(), tensor: tensor.into(), fault }
}
