//! What LSTM, GRU and RNN have in common: directions, layouts, sequence lengths and activation functions.

use heirloom_mem::{Element, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, CancelToken, Cancelled, KernelError, RunCx};

use crate::attributes::unsupported;
use crate::integers;
use crate::product::product;
use crate::real::Real;
use crate::real::num::Wide;

/// An activation function with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activation {
    /// `a x + b`
    Affine(f64, f64),
    /// `x`, below 0 `a (e^x - 1)`
    Elu(f64),
    /// `a x + b` within 0 and 1
    HardSigmoid(f64, f64),
    /// `x`, below 0 `a x`
    LeakyRelu(f64),
    /// `max(x, 0)`
    Relu,
    /// `a tanh(b x)`
    ScaledTanh(f64, f64),
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// `ln(1 + e^x)`
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    /// `tanh(x)`
    Tanh,
    /// `x` above `a`, else 0
    ThresholdedRelu(f64),
}

impl Activation {
    pub(crate) fn of<W: Wide>(self, x: W) -> W {
        use Activation::*;
        let real = |f: &dyn Fn(f64) -> f64| W::from_f64(f(x.to_f64()));
        match self {
            Sigmoid => W::ONE / (W::ONE + (-x).exp()),
            Tanh => x.tanh(),
            Relu => {
                if x > W::default() {
                    x
                } else {
                    W::default()
                }
            }
            Affine(a, b) => real(&|x| a * x + b),
            Elu(a) => real(&|x| if x >= 0.0 { x } else { a * x.exp_m1() }),
            HardSigmoid(a, b) => real(&|x| (a * x + b).clamp(0.0, 1.0)),
            LeakyRelu(a) => real(&|x| if x >= 0.0 { x } else { a * x }),
            ScaledTanh(a, b) => real(&|x| a * (b * x).tanh()),
            Softplus => real(&|x| x.max(0.0) + (-x.abs()).exp().ln_1p()),
            Softsign => real(&|x| x / (1.0 + x.abs())),
            ThresholdedRelu(a) => real(&|x| if x > a { x } else { 0.0 }),
        }
    }
}

/// The attributes that all recurrent operators have.
pub struct Recurrent {
    /// For each direction, its activation functions, and whether it goes from the last step to the first.
    pub directions: Vec<(Vec<Activation>, bool)>,
    /// The bound of what goes into activations.
    pub clip: Option<f64>,
    /// Elements of a state, where the attribute says.
    pub hidden: Option<usize>,
    /// Whether the batch comes before the steps.
    pub batch_first: bool,
}

/// The names of those attributes.
pub const ATTRIBUTES: [&str; 7] =
    ["activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", "layout"];

impl Recurrent {
    /// From the attributes; `defaults` are the activations of one direction.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn parse(cx: &BuildCx<'_>, defaults: &[Activation]) -> Result<Recurrent, BuildError> {
        let attributes = &cx.node.attributes;
        let reverse: &[bool] = match attributes.opt_string("direction")? {
            None | Some(b"forward") => &[false],
            Some(b"reverse") => &[true],
            Some(b"bidirectional") => &[false, true],
            Some(other) => {
                let reason = "forward, reverse and bidirectional are";
                return Err(unsupported("direction", String::from_utf8_lossy(other), reason));
            }
        };
        let mut alphas =
            attributes.opt_floats("activation_alpha")?.unwrap_or(&[]).iter().map(|&v| f64::from(v));
        let mut betas =
            attributes.opt_floats("activation_beta")?.unwrap_or(&[]).iter().map(|&v| f64::from(v));
        let mut functions = Vec::new();
        for name in attributes.opt_strings("activations")?.unwrap_or(&[]) {
            // Functions take their parameters from the lists in turn.
            let mut alpha = |default: f64| alphas.next().unwrap_or(default);
            let mut beta = |default: f64| betas.next().unwrap_or(default);
            functions.push(match &*name.to_ascii_lowercase() {
                b"affine" => Activation::Affine(alpha(1.0), beta(0.0)),
                b"elu" => Activation::Elu(alpha(1.0)),
                b"hardsigmoid" => Activation::HardSigmoid(alpha(0.2), beta(0.5)),
                b"leakyrelu" => Activation::LeakyRelu(alpha(0.01)),
                b"relu" => Activation::Relu,
                b"scaledtanh" => Activation::ScaledTanh(alpha(1.0), beta(1.0)),
                b"sigmoid" => Activation::Sigmoid,
                b"softplus" => Activation::Softplus,
                b"softsign" => Activation::Softsign,
                b"tanh" => Activation::Tanh,
                b"thresholdedrelu" => Activation::ThresholdedRelu(alpha(1.0)),
                _ => {
                    let value = String::from_utf8_lossy(name).into_owned();
                    return Err(unsupported("activations", value, "there is no such function"));
                }
            });
        }
        if functions.is_empty() {
            functions = reverse.iter().flat_map(|_| defaults).copied().collect();
        }
        if functions.len() != defaults.len() * reverse.len() {
            let reason = format!("{} functions for each direction are", defaults.len());
            return Err(unsupported("activations", functions.len(), &reason));
        }
        let functions = functions.chunks_exact(defaults.len()).map(Vec::from);
        let hidden = attributes.opt_int("hidden_size")?;
        let layout = attributes.int_or("layout", 0)?;
        if !(0..=1).contains(&layout) {
            return Err(unsupported("layout", layout, "0 and 1 are"));
        }
        Ok(Recurrent {
            directions: functions.zip(reverse.iter().copied()).collect(),
            clip: attributes.opt_float("clip")?.map(f64::from).filter(|&c| c > 0.0),
            hidden: match hidden {
                Some(h) => Some(
                    usize::try_from(h)
                        .ok()
                        .filter(|&h| h > 0)
                        .ok_or_else(|| unsupported("hidden_size", h, "it is at least 1"))?,
                ),
                None => None,
            },
            batch_first: layout == 1,
        })
    }
}

/// The extents of one call.
#[derive(Clone, Debug)]
pub struct Extents {
    /// Steps of the longest sequence.
    pub steps: usize,
    /// Sequences.
    pub batch: usize,
    /// Elements of an input.
    pub input: usize,
    /// Elements of a state.
    pub hidden: usize,
    /// Directions.
    pub directions: usize,
    /// The steps of each sequence of the batch.
    pub lengths: Vec<usize>,
    /// Whether the batch comes before the steps.
    pub batch_first: bool,
}

impl Extents {
    /// From input 0, X, the recurrence weight and input 4, the sequence lengths.
    ///
    /// # Errors
    /// When shapes do not fit.
    pub fn new(
        cx: &RunCx<'_>,
        node: &Recurrent,
        gates: usize,
        w: &[usize],
        r: &[usize],
    ) -> Result<Extents, KernelError> {
        let x = cx.tensor(0)?.shape();
        let misfit = || KernelError::Shape {
            what: "X is [steps, batch, input], W [directions, gates * hidden, input], R [directions, gates * hidden, hidden]",
            shapes: [x, w, r].map(Shape::from_slice).into(),
        };
        let (&[steps, batch, input], &[d, gw, iw], &[dr, gr, hidden]) = (x, w, r) else {
            return Err(misfit());
        };
        let (steps, batch) = if node.batch_first { (batch, steps) } else { (steps, batch) };
        let directions = node.directions.len();
        if d != directions
            || dr != directions
            || iw != input
            || gw != gates * hidden
            || gr != gw
            || node.hidden.is_some_and(|h| h != hidden)
        {
            return Err(misfit());
        }
        let lengths = match integers::opt_list(cx, 4)? {
            None => vec![steps; batch],
            Some(list) if list.len() == batch => {
                let range = |value| KernelError::Range {
                    what: "the length of a sequence",
                    value,
                    low: 0,
                    high: steps as i64,
                };
                let length =
                    |&v: &i64| usize::try_from(v).ok().filter(|&v| v <= steps).ok_or_else(|| range(v));
                list.iter().map(length).collect::<Result<_, _>>()?
            }
            Some(list) => {
                return Err(KernelError::Shape {
                    what: "there is a length for each sequence of the batch",
                    shapes: vec![Shape::from_elem(list.len(), 1), Shape::from_elem(batch, 1)],
                });
            }
        };
        let batch_first = node.batch_first;
        Ok(Extents { steps, batch, input, hidden, directions, lengths, batch_first })
    }

    /// The shape of Y, all hidden states.
    pub fn all_shape(&self) -> [usize; 4] {
        let Extents { steps, batch, hidden, directions, .. } = *self;
        if self.batch_first { [batch, steps, directions, hidden] } else { [steps, directions, batch, hidden] }
    }

    /// The shape of one state.
    pub fn state_shape(&self) -> [usize; 3] {
        let Extents { batch, hidden, directions, .. } = *self;
        if self.batch_first { [batch, directions, hidden] } else { [directions, batch, hidden] }
    }

    /// Where a hidden state lies in Y.
    pub fn all_at(&self, step: usize, direction: usize, sequence: usize) -> usize {
        let Extents { steps, batch, hidden, directions, .. } = *self;
        match self.batch_first {
            true => ((sequence * steps + step) * directions + direction) * hidden,
            false => ((step * directions + direction) * batch + sequence) * hidden,
        }
    }

    /// Where a state lies.
    pub fn state_at(&self, direction: usize, sequence: usize) -> usize {
        let Extents { batch, hidden, directions, .. } = *self;
        match self.batch_first {
            true => (sequence * directions + direction) * hidden,
            false => (direction * batch + sequence) * hidden,
        }
    }

    /// [`Extents::state`] of FLOAT.
    ///
    /// # Errors
    /// When it has another shape or type.
    pub fn state_f32(&self, cx: &RunCx<'_>, index: usize) -> Result<Vec<f32>, KernelError> {
        self.state::<f32>(cx, index)
    }

    /// [`Extents::finish`] of FLOAT.
    ///
    /// # Errors
    /// When memory does not suffice.
    pub fn finish_f32(&self, cx: &mut RunCx<'_>, all: &[f32], states: &[&[f32]]) -> Result<(), KernelError> {
        self.finish::<f32>(cx, all, states)
    }

    /// A state input [`Extents::state_shape`] as [directions][batch][hidden]; zeros where it is absent.
    ///
    /// # Errors
    /// When it has another shape or type.
    pub(crate) fn state<T: Real>(&self, cx: &RunCx<'_>, index: usize) -> Result<Vec<T::Wide>, KernelError> {
        let mut state = vec![T::Wide::default(); self.directions * self.batch * self.hidden];
        if cx.opt_tensor(index)?.is_some() {
            let given = cx.dense(index)?;
            expect(&given, &self.state_shape(), "a state has the shape of the last hidden state")?;
            let values = given.as_slice::<T>()?;
            for d in 0..self.directions {
                for b in 0..self.batch {
                    let to = &mut state[(d * self.batch + b) * self.hidden..][..self.hidden];
                    let from = &values[self.state_at(d, b)..][..self.hidden];
                    to.iter_mut().zip(from).for_each(|(t, v)| *t = v.widen());
                }
            }
        }
        Ok(state)
    }

    /// Sets outputs 0 (Y), 1 (the last hidden state) and, where given, 2 (the last cell state), from Y and the states
    /// [directions][batch][hidden].
    ///
    /// # Errors
    /// When memory does not suffice.
    pub(crate) fn finish<T: Real>(
        &self,
        cx: &mut RunCx<'_>,
        all: &[T::Wide],
        states: &[&[T::Wide]],
    ) -> Result<(), KernelError> {
        if cx.wants(0) {
            let mut out = cx.alloc(T::DTYPE, &self.all_shape())?;
            out.elements_mut::<T>().iter_mut().zip(all).for_each(|(o, &v)| *o = T::narrow(v));
            cx.set(0, out.freeze());
        }
        for (index, state) in states.iter().enumerate() {
            if !cx.wants(index + 1) {
                continue;
            }
            let mut out = cx.alloc(T::DTYPE, &self.state_shape())?;
            let to = out.elements_mut::<T>();
            for d in 0..self.directions {
                for b in 0..self.batch {
                    let from = &state[(d * self.batch + b) * self.hidden..][..self.hidden];
                    let to = &mut to[self.state_at(d, b)..][..self.hidden];
                    to.iter_mut().zip(from).for_each(|(t, &v)| *t = T::narrow(v));
                }
            }
            cx.set(index + 1, out.freeze());
        }
        Ok(())
    }
}

fn expect(tensor: &Tensor, shape: &[usize], what: &'static str) -> Result<(), KernelError> {
    if tensor.shape() == shape {
        return Ok(());
    }
    Err(KernelError::Shape {
        what,
        shapes: vec![Shape::from_slice(tensor.shape()), Shape::from_slice(shape)],
    })
}

/// A FLOAT [directions, n] input; zeros where it is absent.
///
/// # Errors
/// When it has another shape or type.
pub fn per_direction_f32(
    cx: &RunCx<'_>,
    index: usize,
    directions: usize,
    n: usize,
    what: &'static str,
) -> Result<Vec<f32>, KernelError> {
    per_direction::<f32>(cx, index, directions, n, what)
}

/// A [directions, n] input; zeros where it is absent.
///
/// # Errors
/// When it has another shape or type.
pub(crate) fn per_direction<T: Real>(
    cx: &RunCx<'_>,
    index: usize,
    directions: usize,
    n: usize,
    what: &'static str,
) -> Result<Vec<T::Wide>, KernelError> {
    if cx.opt_tensor(index)?.is_none() {
        return Ok(vec![T::Wide::default(); directions * n]);
    }
    let tensor = cx.dense(index)?;
    expect(&tensor, &[directions, n], what)?;
    Ok(widened::<T>(&tensor)?)
}

/// The elements, to compute with.
pub(crate) fn widened<T: Real + Element>(tensor: &Tensor) -> Result<Vec<T::Wide>, heirloom_mem::ViewError> {
    Ok(tensor.as_slice::<T>()?.iter().map(|v| v.widen()).collect())
}

/// `x` within -clip..=clip.
pub(crate) fn clipped<W: Wide>(x: W, clip: Option<f64>) -> W {
    match clip {
        Some(c) => W::from_f64(x.to_f64().clamp(-c, c)),
        None => x,
    }
}

/// The products of one call.
pub(crate) trait Products<W> {
    /// Elements of a gate's row: gates * hidden.
    fn width(&self) -> usize;
    /// The products of all inputs with a direction's W: [places, width].
    ///
    /// # Errors
    /// When the call is cancelled.
    fn inputs(&self, direction: usize, x: &[W], out: &mut [W], cancel: &CancelToken)
    -> Result<(), Cancelled>;
    /// The products of the batch's states with a direction's R: [batch, width].
    ///
    /// # Errors
    /// When the call is cancelled.
    fn states(&self, direction: usize, h: &[W], out: &mut [W], cancel: &CancelToken)
    -> Result<(), Cancelled>;
}

/// The weights of one call, to compute with.
pub(crate) struct Weights<W> {
    /// [directions, gates * hidden, input]
    pub w: Vec<W>,
    /// [directions, gates * hidden, hidden]
    pub r: Vec<W>,
    /// [directions, 2 * gates * hidden]: of the input, then of the state.
    pub b: Vec<W>,
    width: usize,
    input: usize,
    hidden: usize,
}

impl<W: Wide> Products<W> for Weights<W> {
    fn width(&self) -> usize {
        self.width
    }

    fn inputs(
        &self,
        direction: usize,
        x: &[W],
        out: &mut [W],
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        let w = &self.w[direction * self.width * self.input..][..self.width * self.input];
        product(out, x, w, (self.width, self.input), true, cancel)
    }

    fn states(
        &self,
        direction: usize,
        h: &[W],
        out: &mut [W],
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        let r = &self.r[direction * self.width * self.hidden..][..self.width * self.hidden];
        product(out, h, r, (self.width, self.hidden), true, cancel)
    }
}

/// One step of one sequence: `x` has the input's part of each gate with its bias, `h` the state's part without; updates
/// the hidden state.
pub(crate) trait Cell<W> {
    fn step(&mut self, at: StepAt<'_>, x: &[W], h: &[W], state: &mut [W]);
}

/// Which step is taken.
pub(crate) struct StepAt<'a> {
    pub direction: usize,
    pub sequence: usize,
    pub functions: &'a [Activation],
}

/// Goes through all steps of all directions; `hidden` holds the initial states and then the last ones. Gives Y.
///
/// # Errors
/// When the call is cancelled.
pub(crate) fn run<W: Wide>(
    cx: &RunCx<'_>,
    node: &Recurrent,
    extents: &Extents,
    x: &[W],
    (products, bias): (&dyn Products<W>, &[W]),
    hidden: &mut [W],
    cell: &mut dyn Cell<W>,
) -> Result<Vec<W>, KernelError> {
    let &Extents { steps, batch, hidden: n, directions, .. } = extents;
    let width = products.width();
    let mut all = vec![W::default(); steps * batch * directions * n];
    // The inputs' products are made for all steps at once.
    let mut parts = vec![W::default(); steps * batch * width];
    let mut sums = vec![W::default(); batch * width];
    for (direction, (functions, reverse)) in node.directions.iter().enumerate() {
        let bias = &bias[direction * 2 * width..][..width];
        let hidden = &mut hidden[direction * batch * n..][..batch * n];
        products.inputs(direction, x, &mut parts, cx.cancel())?;
        for step in 0..steps {
            products.states(direction, hidden, &mut sums, cx.cancel())?;
            for sequence in 0..batch {
                let length = extents.lengths[sequence];
                if step >= length {
                    continue;
                }
                let time = if *reverse { length - 1 - step } else { step };
                let place =
                    if extents.batch_first { sequence * steps + time } else { time * batch + sequence };
                let state = &mut hidden[sequence * n..][..n];
                let part = &mut parts[place * width..][..width];
                part.iter_mut().zip(bias).for_each(|(p, &b)| *p += b);
                let at = StepAt { direction, sequence, functions };
                cell.step(at, part, &sums[sequence * width..][..width], state);
                all[extents.all_at(time, direction, sequence)..][..n]
                    .iter_mut()
                    .zip(&*state)
                    .for_each(|(a, &s)| *a = s);
            }
        }
    }
    Ok(all)
}

/// The extents, X and the weights of a call.
pub(crate) type Read<W> = (Extents, Vec<W>, Weights<W>);

/// Reads X and the weights of inputs 1 (W), 2 (R) and 3 (B).
///
/// # Errors
/// When types or shapes do not fit.
pub(crate) fn weights<T: Real>(
    cx: &RunCx<'_>,
    node: &Recurrent,
    gates: usize,
) -> Result<Read<T::Wide>, KernelError> {
    let (x, w, r) = (cx.dense(0)?, cx.dense(1)?, cx.dense(2)?);
    let extents = Extents::new(cx, node, gates, w.shape(), r.shape())?;
    let b = per_direction::<T>(
        cx,
        3,
        extents.directions,
        2 * gates * extents.hidden,
        "B is [directions, 2 * gates * hidden]",
    )?;
    let &Extents { input, hidden, .. } = &extents;
    let (w, r) = (widened::<T>(&w)?, widened::<T>(&r)?);
    let weights = Weights { w, r, b, width: gates * hidden, input, hidden };
    Ok((extents, widened::<T>(&x)?, weights))
}
