//! Kernels of domain `test`.

use std::sync::{Arc, Condvar, Mutex};

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::{StructValue, Value};

const fn spec(
    op: &'static str,
    build: fn(&BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError>,
) -> KernelSpec {
    KernelSpec { domain: "test", op, versions: (1, 1), rank: 0, accepts: |cx| cx.plain_inputs(), build }
}

pub(crate) const ALL: &[KernelSpec] = &[
    spec("Gate", |cx| Ok(Box::new(Gate { name: cx.node.name.clone() }))),
    spec("FailIfNegative", |_| Ok(Box::new(FailIfNegative))),
    spec("CancelIfNegative", |_| Ok(Box::new(CancelIfNegative))),
    spec("Pack", |_| Ok(Box::new(Pack))),
    spec("Unpack", |_| Ok(Box::new(Unpack))),
];

/// Doors by the name of the gate that waits at them.
static DOORS: Mutex<Vec<(String, Door)>> = Mutex::new(Vec::new());
static MOVED: Condvar = Condvar::new();

#[derive(Clone, Copy, Default)]
struct Door {
    waiting: usize,
    open: bool,
}

fn with_door<T>(name: &str, f: impl FnOnce(&mut Door) -> T) -> T {
    let mut doors = DOORS.lock().unwrap();
    let at = doors.iter().position(|(n, _)| n == name).unwrap_or_else(|| {
        doors.push((name.into(), Door::default()));
        doors.len() - 1
    });
    let result = f(&mut doors[at].1);
    MOVED.notify_all();
    result
}

fn wait_until(name: &str, f: impl Fn(&Door) -> bool) {
    let mut doors = DOORS.lock().unwrap();
    while !doors.iter().any(|(n, door)| n == name && f(door)) {
        doors = MOVED.wait(doors).unwrap();
    }
}

/// Returns once a call stands at the gate named `name`.
pub(crate) fn await_arrival(name: &str) {
    wait_until(name, |door| door.waiting > 0);
}

/// Lets all calls through the gate named `name`, from now on.
pub(crate) fn open(name: &str) {
    with_door(name, |door| door.open = true);
}

/// Passes its input on once the gate of the node's name is open.
struct Gate {
    name: String,
}

impl Kernel for Gate {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        with_door(&self.name, |door| door.waiting += 1);
        wait_until(&self.name, |door| door.open);
        with_door(&self.name, |door| door.waiting -= 1);
        let value = cx.value(0).cloned().ok_or(KernelError::MissingInput { index: 0 })?;
        cx.set(0, value);
        Ok(())
    }
}

/// Passes input 0 on; fails where the first element of input 1 is negative.
struct FailIfNegative;

impl Kernel for FailIfNegative {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if cx.slice::<f32>(1)?.first().is_some_and(|&v| v < 0.0) {
            return Err(KernelError::Other("the test asks for a failure".into()));
        }
        let value = cx.value(0).cloned().ok_or(KernelError::MissingInput { index: 0 })?;
        cx.set(0, value);
        Ok(())
    }
}

/// Passes input 0 on; uses the call's own token where the first element of input 1 is negative.
struct CancelIfNegative;

impl Kernel for CancelIfNegative {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if cx.slice::<f32>(1)?.first().is_some_and(|&v| v < 0.0) {
            cx.cancel().cancel();
            cx.cancel().check()?;
        }
        let value = cx.value(0).cloned().ok_or(KernelError::MissingInput { index: 0 })?;
        cx.set(0, value);
        Ok(())
    }
}

/// A struct of the inputs, with fields `s0`, `s1`, ….
struct Pack;

impl Kernel for Pack {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let field = |index: usize| {
            let value = cx.value(index).cloned().ok_or(KernelError::MissingInput { index })?;
            Ok((format!("s{index}").into(), value))
        };
        let fields = (0..cx.input_count()).map(field).collect::<Result<_, KernelError>>()?;
        cx.set(0, Value::Struct(Arc::new(StructValue { fields })));
        Ok(())
    }
}

/// The fields of a struct, one output each.
struct Unpack;

impl Kernel for Unpack {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let Some(Value::Struct(value)) = cx.value(0).cloned() else {
            return Err(KernelError::MissingInput { index: 0 });
        };
        for (index, (_, field)) in value.fields.iter().enumerate().take(cx.output_count()) {
            cx.set(index, field.clone());
        }
        Ok(())
    }
}
