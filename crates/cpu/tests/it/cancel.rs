//! Kernels look at their call's token often: a long one stops soon after it was cancelled.

mod cases;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use heirloom_cpu::ClaimTeam;
use heirloom_runtime::{CancelToken, Cancelled, KernelError, KernelRegistry, NodeCall, NodeInput};
use heirloom_types::Value;

use cases::{Case, FAMILIES, Family};

/// The longest that a kernel may compute between two looks. Tests are compiled with little optimization.
const MOST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 150 } else { 10 });

/// The attempts of one case. A gap that another program caused is not there at each attempt.
const ATTEMPTS: usize = 5;

/// The looks of one call: how many, and from which on they say that the call is cancelled.
#[derive(Clone)]
struct Looks {
    count: Arc<AtomicUsize>,
    cancel_from: usize,
    times: Arc<Mutex<Vec<Instant>>>,
}

impl Looks {
    fn new(cancel_from: usize) -> Looks {
        Looks { count: Arc::default(), cancel_from, times: Arc::default() }
    }

    fn token(&self) -> CancelToken {
        let looks = self.clone();
        CancelToken::new().with_probe(move || {
            looks.times.lock().unwrap().push(Instant::now());
            looks.count.fetch_add(1, Relaxed) >= looks.cancel_from
        })
    }
}

fn call(case: &Case, looks: &Looks) -> Result<NodeCall, String> {
    let registry = KernelRegistry::new()
        .with(heirloom_ops::KERNELS.iter().copied())
        .with(heirloom_cpu::KERNELS.iter().copied());
    let input = |(value, constant): &(Option<Value>, bool)| match value {
        None => NodeInput::Absent,
        Some(value) if *constant => NodeInput::Constant(value.clone()),
        Some(_) => NodeInput::Fed,
    };
    let inputs = case.inputs.iter().map(input).collect();
    let call = NodeCall::new(&registry, case.op, case.opset, case.attributes.clone(), inputs, case.outputs);
    Ok(call.map_err(|e| e.to_string())?.cancel(looks.token()))
}

fn fed(case: &Case) -> Vec<Value> {
    case.inputs.iter().filter(|(_, constant)| !constant).filter_map(|(value, _)| value.clone()).collect()
}

/// The looks of a whole run and the longest time between two of them, or between one and the call's begin or end.
fn longest(case: &Case) -> Result<(usize, Duration, Duration), String> {
    let mut best = (0, Duration::MAX, Duration::MAX);
    for _ in 0..ATTEMPTS {
        let looks = Looks::new(usize::MAX);
        let mut call = call(case, &looks)?;
        let feeds = fed(case);
        let begin = Instant::now();
        let result = call.run(feeds);
        let end = Instant::now();
        drop(result.map_err(|e| e.to_string())?);
        let times = looks.times.lock().unwrap();
        let with_ends = [begin].into_iter().chain(times.iter().copied()).chain([end]);
        let gap = with_ends.clone().zip(with_ends.skip(1)).map(|(a, b)| b - a).max().unwrap();
        if gap < best.1 {
            best = (times.len(), gap, end - begin);
        }
        if gap <= MOST {
            break;
        }
    }
    Ok(best)
}

/// What is wrong with how often the kernel looks; `None` where nothing is.
fn fault(case: &Case) -> Option<String> {
    let name = format!("{} {}", case.op, case.note);
    let (looks, gap, whole) = match longest(case) {
        Ok(found) => found,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    if looks < case.looks {
        return Some(format!("{name}: {looks} looks, not {}; {gap:?} of {whole:?}", case.looks));
    }
    if gap > MOST {
        return Some(format!("{name}: {gap:?} of {whole:?} without a look ({looks} in all)"));
    }
    // Cancelled in its middle it ends with the error, whoever does the work.
    for threads in [1, 2] {
        let half = Looks::new(looks / 2);
        let result = call(case, &half).unwrap().team(Arc::new(ClaimTeam::new(threads))).run(fed(case));
        if !matches!(result, Err(KernelError::Cancelled(Cancelled))) {
            return Some(format!("{name}: {threads} threads, {:?}", result.map(|_| "not cancelled")));
        }
    }
    None
}

/// All families, or those that a variable names.
fn check(families: &[Family]) {
    let only = std::env::var("HEIRLOOM_TEST_CASES").ok();
    let mut faults = Vec::new();
    for (family, cases) in families {
        if only.as_ref().is_none_or(|only| only == family) {
            faults.extend(cases().iter().filter_map(fault));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

// proves: R8
#[test]
fn each_family_of_kernels_looks_at_the_token_often_enough() {
    check(FAMILIES);
}
