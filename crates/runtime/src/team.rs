//! The interface of the threads that share a kernel's work.

/// Threads that work through numbered tasks together.
pub trait Team: Send + Sync {
    /// How many threads take part, the caller included.
    fn threads(&self) -> usize;

    /// Calls `f` once for each of `0..tasks` and returns when all are done. Any thread may take any task, in
    /// rising order; the caller takes tasks too. Tasks must not start a region of their own.
    fn run(&self, tasks: usize, f: &(dyn Fn(usize) + Sync));

    /// Tells threads without work what will be read next. Only a hint: nothing is read, whatever the address.
    fn announce(&self, soon: Soon) {
        let _ = soon;
    }
}

/// Bytes that will be read soon, each thread beginning with a contiguous share of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Soon {
    /// The address of the first.
    pub address: usize,
    /// How many there are.
    pub bytes: usize,
    /// Bytes of a thread's share.
    pub share: usize,
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
