//! The call's own queries, keys and values.

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{KernelError, RunCx};

use crate::real::Real;

/// `[batch, heads, tokens, size]`, or `[batch, tokens, heads * size]`.
pub(super) struct Rows {
    tensor: Tensor,
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) tokens: usize,
    pub(super) size: usize,
    pub(super) flat: bool,
}

/// The size of a head in a tensor of this shape.
pub(super) fn head_size(shape: &[usize], heads: Option<usize>) -> Option<usize> {
    match (shape, heads) {
        (&[_, own, _, size], heads) if heads.is_none_or(|heads| heads == own) => Some(size),
        (&[_, _, hidden], Some(heads)) if hidden.is_multiple_of(heads) => Some(hidden / heads),
        _ => None,
    }
}

impl Rows {
    pub(super) fn new<T: Real>(
        cx: &RunCx<'_>,
        index: usize,
        heads: Option<usize>,
    ) -> Result<Rows, KernelError> {
        let tensor = cx.dense(index)?;
        if tensor.dtype() != T::DTYPE {
            let (expected, actual): (DType, DType) = (T::DTYPE, tensor.dtype());
            let expected = format!("{expected} tensor, as the query is");
            return Err(KernelError::InputType { index, expected, actual: format!("{actual} tensor") });
        }
        let size = head_size(tensor.shape(), heads).ok_or_else(|| KernelError::Shape {
            what: "queries, keys and values are [batch, heads, tokens, size], or [batch, tokens, heads * size] with \
                   `q_num_heads` and `kv_num_heads`",
            shapes: vec![Shape::from_slice(tensor.shape())],
        })?;
        let (batch, heads, tokens, flat) = match (tensor.shape(), heads) {
            (&[batch, tokens, _], Some(heads)) => (batch, heads, tokens, true),
            (shape, _) => (shape[0], shape[1], shape[2], false),
        };
        Ok(Rows { tensor, batch, heads, tokens, size, flat })
    }

    /// The number of the row of one token of one head, counted in rows of `size` elements.
    pub(super) fn row(&self, batch: usize, head: usize, token: usize) -> usize {
        if self.flat {
            (batch * self.tokens + token) * self.heads + head
        } else {
            (batch * self.heads + head) * self.tokens + token
        }
    }

    /// The elements of one token of one head.
    pub(super) fn get<T: Real>(&self, batch: usize, head: usize, token: usize) -> Result<&[T], KernelError> {
        let start = self.row(batch, head, token) * self.size;
        Ok(&self.tensor.as_slice::<T>()?[start..start + self.size])
    }

    /// The bytes of one token of one head.
    pub(super) fn bytes(&self, batch: usize, head: usize, token: usize) -> &[u8] {
        let width = self.size * self.dtype().payload_bytes(1).unwrap_or(0);
        let start = self.row(batch, head, token) * width;
        &self.tensor.dense_bytes().unwrap_or(&[])[start..start + width]
    }

    pub(super) fn dtype(&self) -> DType {
        self.tensor.dtype()
    }

    /// The shape of the same rows of another size.
    pub(super) fn shape(&self, size: usize) -> Shape {
        if self.flat {
            Shape::from_slice(&[self.batch, self.tokens, self.heads * size])
        } else {
            Shape::from_slice(&[self.batch, self.heads, self.tokens, size])
        }
    }
}

/// Keys and values.
pub(super) struct Heads {
    pub(super) keys: Rows,
    pub(super) values: Rows,
}

impl Heads {
    /// Whether keys, values and queries belong together.
    pub(super) fn check(&self, query: &Rows) -> Result<(), KernelError> {
        let (keys, values) = (&self.keys, &self.values);
        let fits = keys.batch == query.batch
            && values.batch == query.batch
            && keys.size == query.size
            && (keys.tokens, keys.heads) == (values.tokens, values.heads)
            && keys.tokens == query.tokens
            && keys.heads > 0
            && query.heads.is_multiple_of(keys.heads);
        if fits {
            return Ok(());
        }
        let shape = |rows: &Rows| Shape::from_slice(&[rows.batch, rows.heads, rows.tokens, rows.size]);
        Err(KernelError::Shape {
            what: "keys and values have the queries' batch and tokens, keys their size, and the queries' heads are a \
                   multiple of theirs",
            shapes: vec![shape(query), shape(keys), shape(values)],
        })
    }
}
