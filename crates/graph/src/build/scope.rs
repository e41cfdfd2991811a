//! What the builders of one model share, and which names are taken and visible where.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heirloom_types::{Catalogue, Content, Kind, StructType, TypeError, ValueType};
use rustc_hash::FxHashMap;

use crate::Problem;
use crate::function::{Opsets, canonical_domain, version_of};
use crate::names::closest;

/// What the builders of one model share: declared types, functions, operator sets.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) catalogue: Catalogue,
    pub(super) opsets: Opsets,
    /// Inputs and outputs of functions by domain, name and overload.
    pub(super) functions: FxHashMap<(String, String, String), (usize, usize)>,
}

/// A handle on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Common(Arc<Mutex<Shared>>);

impl Common {
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Declares the types with identities that a value's type refers to.
    pub(super) fn declare(&mut self, ty: &ValueType) -> Result<(), Problem> {
        match ty {
            ValueType::Struct(ty) => self.declare_struct(ty),
            ValueType::Sequence(element) | ValueType::Optional(element) => self.declare(element),
            ValueType::Map { value, .. } => self.declare(value),
            _ => Ok(()),
        }
    }

    pub(super) fn declare_struct(&mut self, ty: &Arc<StructType>) -> Result<(), Problem> {
        if ty.type_id().is_some() {
            return self.catalogue.define(ty).map_err(Problem::Type);
        }
        match ty.kind() {
            Kind::Array { element, .. } => self.declare(element),
            Kind::Structure(fields) => fields.iter().try_for_each(|field| match &field.content {
                Content::Type(ty) => self.declare(ty),
                Content::Constant(_) => Ok(()),
            }),
            _ => Ok(()),
        }
    }

    pub(super) fn declared(&self, id: u64) -> Result<Arc<StructType>, Problem> {
        let id = NonZeroU64::new(id).ok_or(Problem::Type(TypeError::ZeroTypeId))?;
        self.catalogue.get(id.get()).cloned().ok_or(Problem::Type(TypeError::Unresolved { id }))
    }

    pub(super) fn import(&mut self, domain: &str, version: i64) -> Result<(), Problem> {
        import(&mut self.opsets, domain, version)
    }
}

/// Adds an operator set.
pub(super) fn import(opsets: &mut Opsets, domain: &str, version: i64) -> Result<(), Problem> {
    if version < 1 {
        return Err(Problem::OpsetVersion { domain: domain.into(), version });
    }
    match version_of(opsets, domain) {
        None => opsets.push((canonical_domain(domain).into(), version)),
        Some(first) if first == version => {}
        Some(first) => {
            let first = format!("version {first}");
            return Err(Problem::Duplicate { what: "domain", name: domain.into(), first });
        }
    }
    Ok(())
}

/// The names of one graph.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// What defines each name, for messages.
    taken: FxHashMap<Arc<str>, &'static str>,
    /// The next number to try for a hint.
    next: FxHashMap<String, u32>,
}

/// The names of a graph and of those around it.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    names: Arc<Mutex<Names>>,
    around: Option<Arc<Scope>>,
}

impl Scope {
    /// The scope of a body within this one.
    pub(super) fn inner(&self) -> Scope {
        Scope { names: Arc::default(), around: Some(Arc::new(self.clone())) }
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn each(&self) -> impl Iterator<Item = &Scope> {
        std::iter::successors(Some(self), |scope| scope.around.as_deref())
    }

    fn what_has(&self, name: &str) -> Option<&'static str> {
        self.each().find_map(|scope| scope.lock().taken.get(name).copied())
    }

    /// Whether a value of that name can be read here.
    pub(super) fn sees(&self, name: &str) -> bool {
        self.what_has(name).is_some()
    }

    /// What of this graph itself has the name.
    pub(super) fn own(&self, name: &str) -> Option<&'static str> {
        self.lock().taken.get(name).copied()
    }

    /// Takes a name for a value of this graph.
    pub(super) fn define(&self, name: &str, by: &'static str) -> Result<Arc<str>, Problem> {
        if name.is_empty() {
            return Err(Problem::NoName { what: by });
        }
        if let Some(first) = self.what_has(name) {
            return Err(Problem::Taken { name: name.into(), by: article(first) });
        }
        let name: Arc<str> = name.into();
        self.lock().taken.insert(name.clone(), by);
        Ok(name)
    }

    /// Why a name cannot be read here.
    pub(super) fn check(&self, name: &str) -> Result<(), Problem> {
        if name.is_empty() {
            return Err(Problem::NoName { what: "value that is read" });
        }
        if self.sees(name) {
            return Ok(());
        }
        let mut similar = Vec::new();
        for scope in self.each() {
            similar.extend(closest(name, scope.lock().taken.keys().map(|name| &**name)));
        }
        similar.truncate(3);
        Err(Problem::Undefined { name: name.into(), similar })
    }

    /// A name that nothing visible has: the hint itself, or the hint with a number.
    pub(super) fn unique(&self, hint: &str) -> String {
        if !hint.is_empty() && !self.sees(hint) {
            return hint.into();
        }
        loop {
            let number = {
                let mut names = self.lock();
                let next = names.next.entry(hint.into()).or_insert(0);
                *next += 1;
                *next
            };
            let name = format!("{hint}_{number}");
            if !self.sees(&name) {
                return name;
            }
        }
    }
}

fn article(what: &str) -> String {
    let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {what}")
}
