//! Where a call's time goes, node by node.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::plan::Label;

/// Collects the time of each node over the calls that it is given to. Nodes of control flow count the time of their
/// bodies too.
#[derive(Debug, Default)]
pub struct Profile(Mutex<FxHashMap<usize, NodeTime>>);

/// One node's share.
#[derive(Clone, Debug)]
pub struct NodeTime {
    /// The node's name; with the names of function calls that led to it.
    pub name: String,
    /// The operator.
    pub op: String,
    /// How often it ran.
    pub runs: u64,
    /// Time of all runs.
    pub time: Duration,
}

impl Profile {
    /// An empty profile.
    pub fn new() -> Profile {
        Profile::default()
    }

    pub(crate) fn add(&self, label: &Label, time: Duration) {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The name's address tells nodes of one plan apart, also where they have no or equal names.
        let entry = nodes.entry(label.name.as_ptr().addr()).or_insert_with(|| NodeTime {
            name: label.name.to_string(),
            op: label.op.to_string(),
            runs: 0,
            time: Duration::ZERO,
        });
        entry.runs += 1;
        entry.time += time;
    }

    /// All nodes that ran, the most expensive first.
    pub fn nodes(&self) -> Vec<NodeTime> {
        let nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut list: Vec<_> = nodes.values().cloned().collect();
        list.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        list
    }

    /// Time of all nodes.
    pub fn total(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().map(|node| node.time).sum()
    }
}
