//! One step's gates, vectorized.
#![allow(unsafe_code)]

use crate::lanes::{Lanes, for_level};

#[inline(always)]
fn sigmoid<S: Lanes>(s: S, x: S::V) -> S::V {
    let one = s.splat(1.0);
    s.div(one, s.add(one, s.exp(s.sub(s.splat(0.0), x))))
}

#[inline(always)]
fn tanh<S: Lanes>(s: S, x: S::V) -> S::V {
    // 2 sigmoid(2 x) - 1
    let two = s.splat(2.0);
    s.sub(s.mul(two, sigmoid(s, s.mul(two, x))), s.splat(1.0))
}

/// Calls `$body` with the place and the number of elements of each register of `$n` elements; the last may be cut off.
macro_rules! registers {
    ($s:ident, $n:expr, |$at:ident, $len:ident| $body:block) => {
        let mut $at = 0;
        while $at < $n {
            let $len = ($n - $at).min(S::N);
            $body
            $at += S::N;
        }
    };
}

#[inline(always)]
fn load<S: Lanes>(s: S, from: &[f32], len: usize) -> S::V {
    if len == S::N {
        return s.load(from);
    }
    let mut part = [0.0; 16];
    part.iter_mut().zip(&from[..len]).for_each(|(p, &v)| *p = v);
    s.load(&part)
}

#[inline(always)]
fn store<S: Lanes>(s: S, to: &mut [f32], v: S::V, len: usize) {
    if len == S::N {
        return s.store(to, v);
    }
    let mut part = [0.0; 16];
    s.store(&mut part, v);
    to[..len].iter_mut().zip(part).for_each(|(t, v)| *t = v);
}

for_level! {
    /// Gates input, output, forget, cell of one sequence; the peepholes of the first three, or none.
    fn lstm(s, gates: &[f32], peepholes: &[f32], cell: &mut [f32], hidden: &mut [f32]) {
        let n = cell.len();
        registers!(s, n, |at, len| {
            let gate = |i: usize| load(s, &gates[i * n + at..], len);
            let peep = |i: usize, x: S::V, c: S::V| match peepholes.is_empty() {
                true => x,
                false => s.fma(load(s, &peepholes[i * n + at..], len), c, x),
            };
            let old = load(s, &cell[at..], len);
            let input = sigmoid(s, peep(0, gate(0), old));
            let forget = sigmoid(s, peep(2, gate(2), old));
            let new = s.fma(forget, old, s.mul(input, tanh(s, gate(3))));
            let output = sigmoid(s, peep(1, gate(1), new));
            store(s, &mut cell[at..], new, len);
            store(s, &mut hidden[at..], s.mul(output, tanh(s, new)), len);
        });
    }
}

for_level! {
    /// Turns gates update and reset of one sequence into their values, and gives reset times state.
    fn gru_gates(s, gates: &mut [f32], state: &[f32], kept: &mut [f32]) {
        let n = state.len();
        registers!(s, n, |at, len| {
            let update = sigmoid(s, load(s, &gates[at..], len));
            let reset = sigmoid(s, load(s, &gates[n + at..], len));
            store(s, &mut gates[at..], update, len);
            store(s, &mut gates[n + at..], reset, len);
            store(s, &mut kept[at..], s.mul(reset, load(s, &state[at..], len)), len);
        });
    }
}

for_level! {
    /// The new state: `scaled` is added to the candidate's part, times the reset gate where `after`.
    fn gru_state(s, gates: &[f32], scaled: &[f32], after: bool, state: &mut [f32]) {
        let n = state.len();
        registers!(s, n, |at, len| {
            let update = load(s, &gates[at..], len);
            let mut more = load(s, &scaled[at..], len);
            if after {
                more = s.mul(more, load(s, &gates[n + at..], len));
            }
            let candidate = tanh(s, s.add(load(s, &gates[2 * n + at..], len), more));
            let old = load(s, &state[at..], len);
            // (1 - z) c + z h
            let new = s.fma(update, s.sub(old, candidate), candidate);
            store(s, &mut state[at..], new, len);
        });
    }
}
