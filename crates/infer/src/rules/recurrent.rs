//! Recurrent layers.

use super::{Cx, Outcome, Rule};
use crate::Expr;
use crate::fact::Dim;

pub(super) const RULES: &[Rule] = &[("GRU", gru), ("LSTM", lstm), ("RNN", rnn)];

pub(super) const MICROSOFT: &[Rule] = &[("DynamicQuantizeLSTM", lstm)];

fn rnn(cx: &mut Cx<'_>) -> Outcome {
    layer(cx, 1)
}

fn gru(cx: &mut Cx<'_>) -> Outcome {
    layer(cx, 1)
}

fn lstm(cx: &mut Cx<'_>) -> Outcome {
    layer(cx, 2)
}

/// All hidden states, then `last` outputs of last states.
fn layer(cx: &mut Cx<'_>, last: usize) -> Outcome {
    let dtype = cx.dtype(0)?;
    let x = cx.dims(0).ok().filter(|dims| dims.len() == 3);
    let x = |axis: usize| x.and_then(|dims| dims[axis].clone());
    let directions = if cx.string("direction") == "bidirectional" { 2 } else { 1 };
    let directions: Dim = Some(Expr::number(directions));
    let recurrence = cx.dims(2).ok().and_then(|dims| dims.get(2)?.clone());
    let is_plain = &*cx.node.op_type != "DynamicQuantizeLSTM";
    let hidden = cx.opt_int("hidden_size").map(Expr::number).or(recurrence.filter(|_| is_plain));
    let initial =
        cx.dims(5).ok().and_then(|dims| dims.get(if cx.int("layout", 0) == 0 { 1 } else { 0 })?.clone());
    if cx.int("layout", 0) == 0 {
        let (sequence, batch) = (x(0), super::cx::better(x(1), initial));
        cx.set(0, dtype, Some(vec![sequence, directions.clone(), batch.clone(), hidden.clone()]));
        for output in 1..=last {
            cx.set(output, dtype, Some(vec![directions.clone(), batch.clone(), hidden.clone()]));
        }
    } else {
        let (batch, sequence) = (super::cx::better(x(0), initial), x(1));
        cx.set(0, dtype, Some(vec![batch.clone(), sequence, directions.clone(), hidden.clone()]));
        for output in 1..=last {
            cx.set(output, dtype, Some(vec![batch.clone(), directions.clone(), hidden.clone()]));
        }
    }
    Ok(())
}
