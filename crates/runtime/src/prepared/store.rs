//! The store: one object for each identity, made once, within a budget.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use heirloom_mem::{Bytes, BytesMut, Ledger};
use heirloom_types::Value;
use rustc_hash::FxHashMap;

use super::disk::{CacheError, Folder, Found};
use super::identity::{Identity, KernelLayout};
use crate::{CancelToken, KernelError};

/// Objects that were not asked for in so many rounds over all objects may make room for a new one. Fewer would let the
/// objects of one model push each other out in every call.
const IDLE_ROUNDS: u64 = 4;

/// Choices for a [`PreparedStore`].
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// The most bytes of objects; `None` is no limit. Objects in a folder's mapping count too.
    pub budget: Option<usize>,
    /// Keeps objects in this folder for later processes. It must be one that only its owner can write to.
    pub folder: Option<PathBuf>,
}

/// Prepared objects, shared by the sessions that were given the store.
pub struct PreparedStore {
    folder: Option<Folder>,
    table: Mutex<Table>,
    /// Times that an object was asked for.
    asked: AtomicU64,
    counts: Counters,
}

#[derive(Default)]
struct Counters {
    made: AtomicU64,
    shared: AtomicU64,
    evicted: AtomicU64,
    declined: AtomicU64,
    loaded: AtomicU64,
    refused: AtomicU64,
}

struct Table {
    entries: FxHashMap<Identity, Arc<Entry>>,
    budget: usize,
    /// Bytes of the objects that exist or are being made.
    bytes: usize,
}

struct Entry {
    identity: Identity,
    slot: Mutex<Slot>,
    changed: Condvar,
    /// When the object was asked for last, in times that any was.
    asked: AtomicU64,
    /// Kernels that claimed it; changed under the table's lock alone.
    claims: AtomicU64,
}

enum Slot {
    Empty,
    /// Somebody makes it.
    Making,
    Ready(Bytes),
}

/// What a [`PreparedStore`] holds and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreReport {
    /// Objects that kernels of living sessions claim, made or not.
    pub claimed: u64,
    /// Objects that exist.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects made from a constant so far.
    pub made: u64,
    /// Times that an object was there already.
    pub shared: u64,
    /// Objects dropped for others.
    pub evicted: u64,
    /// Times that there was no room, and a kernel computed from the constant.
    pub declined: u64,
    /// Objects taken from the folder.
    pub loaded: u64,
    /// Files of the folder that were not right and made anew.
    pub refused: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every critical section leaves its data valid between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PreparedStore {
    /// An empty store.
    ///
    /// # Errors
    /// When the folder cannot be made, or other users may write to it.
    pub fn new(options: StoreOptions) -> Result<PreparedStore, CacheError> {
        let folder = options.folder.as_deref().map(Folder::new).transpose()?;
        let budget = options.budget.unwrap_or(usize::MAX);
        Ok(PreparedStore {
            folder,
            table: Mutex::new(Table { entries: FxHashMap::default(), budget, bytes: 0 }),
            asked: AtomicU64::new(0),
            counts: Counters::default(),
        })
    }

    /// Present figures.
    pub fn report(&self) -> StoreReport {
        let table = lock(&self.table);
        let ready = |entry: &&Arc<Entry>| matches!(*lock(&entry.slot), Slot::Ready(_));
        let objects = table.entries.values().filter(ready).count() as u64;
        let counts = &self.counts;
        StoreReport {
            claimed: table.entries.len() as u64,
            objects,
            bytes: table.bytes as u64,
            made: counts.made.load(Relaxed),
            shared: counts.shared.load(Relaxed),
            evicted: counts.evicted.load(Relaxed),
            declined: counts.declined.load(Relaxed),
            loaded: counts.loaded.load(Relaxed),
            refused: counts.refused.load(Relaxed),
        }
    }

    /// Sets another budget, and drops the objects that were not asked for longest until it is kept. Objects that a call
    /// reads at this moment stay.
    pub fn set_budget(&self, budget: Option<usize>) {
        let mut table = lock(&self.table);
        table.budget = budget.unwrap_or(usize::MAX);
        self.evict(&mut table, 0, 0);
    }

    /// Drops the objects that no call reads at this moment. Calls that need them make them anew.
    pub fn trim(&self) {
        let mut table = lock(&self.table);
        let budget = std::mem::replace(&mut table.budget, 0);
        self.evict(&mut table, 0, 0);
        table.budget = budget;
    }

    pub(super) fn claim(store: &Arc<PreparedStore>, identity: Identity) -> Option<Prepared> {
        let mut table = lock(&store.table);
        if identity.layout.bytes == 0 || identity.layout.bytes > table.budget {
            return None;
        }
        let entry = table.entries.entry(identity.clone()).or_insert_with(|| {
            Arc::new(Entry {
                identity,
                slot: Mutex::new(Slot::Empty),
                changed: Condvar::new(),
                asked: AtomicU64::new(store.asked.load(Relaxed)),
                claims: AtomicU64::new(0),
            })
        });
        entry.claims.fetch_add(1, Relaxed);
        Some(Prepared { entry: entry.clone(), store: store.clone() })
    }

    /// Makes room for `more` bytes by dropping objects that nobody reads, the least recently asked for first, where
    /// they were idle for `idle` rounds; whether there is room.
    fn evict(&self, table: &mut Table, more: usize, idle: u64) -> bool {
        let enough = |table: &Table| table.bytes.checked_add(more).is_some_and(|n| n <= table.budget);
        if enough(table) {
            return true;
        }
        let now = self.asked.load(Relaxed);
        let age = |entry: &Entry| now.saturating_sub(entry.asked.load(Relaxed));
        let rounds = idle.saturating_mul(table.entries.len() as u64);
        let mut old: Vec<Arc<Entry>> =
            table.entries.values().filter(|entry| age(entry) >= rounds).cloned().collect();
        old.sort_by_key(|entry| std::cmp::Reverse(age(entry)));
        for entry in old {
            if enough(table) {
                break;
            }
            let mut slot = lock(&entry.slot);
            if matches!(&*slot, Slot::Ready(bytes) if !bytes.is_shared()) {
                *slot = Slot::Empty;
                table.bytes -= entry.identity.layout.bytes;
                self.counts.evicted.fetch_add(1, Relaxed);
            }
        }
        enough(table)
    }

    fn reserve(&self, bytes: usize) -> bool {
        let mut table = lock(&self.table);
        let room = self.evict(&mut table, bytes, IDLE_ROUNDS);
        if room {
            table.bytes += bytes;
        }
        room
    }
}

/// A kernel's claim on an object. The object lives as long as a claim on it, unless it has to make room for others.
pub struct Prepared {
    entry: Arc<Entry>,
    store: Arc<PreparedStore>,
}

/// Ends the making of an object: unless it succeeded, its bytes are free again and others may try.
struct Making<'a> {
    prepared: &'a Prepared,
    reserved: usize,
    object: Option<Bytes>,
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        let entry = &self.prepared.entry;
        let slot = self.object.take().map_or(Slot::Empty, Slot::Ready);
        if matches!(slot, Slot::Empty) {
            lock(&self.prepared.store.table).bytes -= self.reserved;
        }
        *lock(&entry.slot) = slot;
        entry.changed.notify_all();
    }
}

impl Prepared {
    /// The layout that was claimed.
    pub fn layout(&self) -> &KernelLayout {
        &self.entry.identity.layout
    }

    /// The object; made with `pack` where it is missing. `None` where there is no room.
    pub(crate) fn get(
        &self,
        source: Option<&Value>,
        cancel: &CancelToken,
        ledger: &Ledger,
        pack: impl FnOnce(&mut [u8]) -> Result<(), KernelError>,
    ) -> Result<Option<Bytes>, KernelError> {
        let (entry, store) = (&*self.entry, &*self.store);
        entry.asked.store(store.asked.fetch_add(1, Relaxed) + 1, Relaxed);
        let mut slot = lock(&entry.slot);
        loop {
            match &*slot {
                Slot::Ready(bytes) => {
                    store.counts.shared.fetch_add(1, Relaxed);
                    return Ok(Some(bytes.clone()));
                }
                Slot::Making => {
                    cancel.check()?;
                    let wait = entry.changed.wait_timeout(slot, Duration::from_millis(2));
                    slot = wait.unwrap_or_else(PoisonError::into_inner).0;
                }
                Slot::Empty => break,
            }
        }
        *slot = Slot::Making;
        drop(slot);
        let mut making = Making { prepared: self, reserved: 0, object: None };
        let bytes = entry.identity.layout.bytes;
        if !store.reserve(bytes) {
            store.counts.declined.fetch_add(1, Relaxed);
            return Ok(None);
        }
        making.reserved = bytes;
        let object = self.make(source, ledger, pack)?;
        making.object = Some(object.clone());
        Ok(Some(object))
    }

    /// From the folder, else with `pack`.
    fn make(
        &self,
        source: Option<&Value>,
        ledger: &Ledger,
        pack: impl FnOnce(&mut [u8]) -> Result<(), KernelError>,
    ) -> Result<Bytes, KernelError> {
        let (identity, counts) = (&self.entry.identity, &self.store.counts);
        let bytes = identity.layout.bytes;
        let on_disk = self.store.folder.as_ref().zip(source).map(|(f, source)| (f, identity.digest(source)));
        if let Some((folder, digest)) = &on_disk {
            match folder.read(digest, bytes) {
                Found::Object(object) => {
                    counts.loaded.fetch_add(1, Relaxed);
                    return Ok(object);
                }
                Found::Refused => _ = counts.refused.fetch_add(1, Relaxed),
                Found::Nothing => {}
            }
        }
        let mut object = BytesMut::zeroed(bytes, ledger);
        pack(object.as_mut_slice())?;
        counts.made.fetch_add(1, Relaxed);
        if let Some((folder, digest)) = &on_disk {
            // A full or read-only disk costs the next process some time, this one nothing.
            folder.write(digest, object.elements());
        }
        Ok(object.freeze())
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        let mut table = lock(&self.store.table);
        if self.entry.claims.fetch_sub(1, Relaxed) == 1 {
            table.entries.remove(&self.entry.identity);
            if matches!(std::mem::replace(&mut *lock(&self.entry.slot), Slot::Empty), Slot::Ready(_)) {
                table.bytes -= self.entry.identity.layout.bytes;
            }
        }
    }
}

impl fmt::Debug for PreparedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PreparedStore({:?})", self.report())
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({:?})", self.entry.identity.layout)
    }
}
