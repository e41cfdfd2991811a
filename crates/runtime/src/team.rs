//! The interface of the threads that share a kernel's work.

/// Threads that work through numbered tasks together.
pub trait Team: Send + Sync {
    /// How many threads take part, the caller included.
    fn threads(&self) -> usize;

    /// Calls `f` once for each of `0..tasks` and returns when all are done. Any thread may take any task, in
    /// rising order; the caller takes tasks too. Tasks must not start a region of their own.
    fn run(&self, tasks: usize, f: &(dyn Fn(usize) + Sync));
}

/// The caller alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Team for Inline {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, tasks: usize, f: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(f);
    }
}
