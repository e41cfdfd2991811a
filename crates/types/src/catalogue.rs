//! The struct types of a model, by identity.

use std::num::NonZeroU64;
use std::sync::Arc;

use heirloom_proto::struct_type_proto::Kind as KindProto;
use heirloom_proto::struct_type_proto::structure::field::Content as ContentProto;
use heirloom_proto::{ExternalResolver, StructTypeProto, TypeProto, type_proto};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::path::{FaultList, Path};
use crate::read_types::{Lookup, TypeReader, catalogue_id};
use crate::struct_type::{Content, Kind, MAX_DEPTH};
use crate::{Fault, Faults, StructType, TypeError, ValueType};

/// The declared struct types of a model. Each exists once, whoever refers to it; the order of declarations means
/// nothing and is kept.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    types: FxHashMap<NonZeroU64, Arc<StructType>>,
    order: Vec<NonZeroU64>,
    /// Declared, but faulty: reported where they are declared and nowhere else.
    faulty: FxHashSet<NonZeroU64>,
}

impl Catalogue {
    /// No types.
    pub fn new() -> Catalogue {
        Catalogue::default()
    }

    /// The catalogue that a model's `struct_types` declare. Constants in external data need `files`. Each
    /// declaration is visited once, however often it is referred to; no codec is run.
    ///
    /// # Errors
    /// All faults, each with its path.
    pub fn from_protos(
        protos: &[StructTypeProto],
        files: Option<&ExternalResolver>,
    ) -> Result<Catalogue, Faults> {
        let (catalogue, faults) = Catalogue::read(protos, files);
        if faults.is_empty() { Ok(catalogue) } else { Err(Faults(faults)) }
    }

    /// All faults of a model's `struct_types`, each with its path.
    pub fn check(protos: &[StructTypeProto], files: Option<&ExternalResolver>) -> Vec<Fault> {
        Catalogue::read(protos, files).1
    }

    /// The right declarations among a model's `struct_types`, and the faults of the others. References to faulty
    /// declarations are no faults of their own, so that the rest of a model can be checked with this catalogue.
    pub fn read(protos: &[StructTypeProto], files: Option<&ExternalResolver>) -> (Catalogue, Vec<Fault>) {
        let mut catalogue = Catalogue::new();
        let mut faults = FaultList::default();
        let mut first: FxHashMap<NonZeroU64, usize> = FxHashMap::default();
        let mut duplicates = FxHashSet::default();
        for (index, proto) in protos.iter().enumerate() {
            let Ok(id) = catalogue_id(proto) else { continue };
            match first.get(&id) {
                Some(&first) => {
                    let path = Path::element_of("struct_types", index);
                    faults.add(&path, TypeError::DuplicateTypeId { id, first });
                    duplicates.insert(index);
                }
                None => {
                    first.insert(id, index);
                }
            }
        }
        for index in dependencies_first(protos, &first, &mut faults, &mut catalogue.faulty) {
            let path = Path::element_of("struct_types", index);
            let lookup = |id| match catalogue.types.get(&id) {
                Some(ty) => Lookup::Found(ty.clone()),
                None if first.contains_key(&id) => Lookup::Faulty,
                None => Lookup::Missing,
            };
            let ty =
                TypeReader { lookup: &lookup, files, faults: &mut faults }.declaration(&protos[index], &path);
            if duplicates.contains(&index) {
                continue;
            }
            match (ty, catalogue_id(&protos[index])) {
                (Some(ty), Ok(id)) if !catalogue.faulty.contains(&id) => {
                    catalogue.types.insert(id, Arc::new(ty));
                }
                (_, Ok(id)) => {
                    catalogue.faulty.insert(id);
                }
                _ => {}
            }
        }
        let ids = protos.iter().filter_map(|proto| catalogue_id(proto).ok());
        let mut seen = FxHashSet::default();
        catalogue.order = ids.filter(|id| catalogue.types.contains_key(id) && seen.insert(*id)).collect();
        (catalogue, faults.into_vec())
    }

    /// The type with identity `id`.
    pub fn get(&self, id: u64) -> Option<&Arc<StructType>> {
        self.types.get(&NonZeroU64::new(id)?)
    }

    /// All types in the order of their declarations.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<StructType>> {
        self.order.iter().map(|id| &self.types[id])
    }

    /// How many types there are.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is no type.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Declares a type, and those with identities that it refers to. Declaring one again changes nothing.
    ///
    /// # Errors
    /// When the type has no identity, or one that another declaration has: whatever differs in fields, constants,
    /// layout, decoder or encoder needs an identity of its own. Nothing is declared then.
    pub fn define(&mut self, ty: &Arc<StructType>) -> Result<(), TypeError> {
        ty.type_id().ok_or(TypeError::NoTypeId)?;
        let mut found = NewTypes::default();
        self.collect(ty, &mut found)?;
        for ty in found.types {
            if let Some(id) = ty.type_id() {
                self.types.insert(id, ty);
                self.order.push(id);
            }
        }
        Ok(())
    }

    /// The types with identities in `ty` that are not declared yet, nested ones first. Each type is visited once.
    fn collect(&self, ty: &Arc<StructType>, found: &mut NewTypes) -> Result<(), TypeError> {
        if !found.visited.insert(Arc::as_ptr(ty).addr()) {
            return Ok(());
        }
        match ty.kind() {
            Kind::Array { element, .. } => self.collect_in_value(element, found)?,
            Kind::Structure(fields) => {
                for field in fields {
                    if let Content::Type(value) = &field.content {
                        self.collect_in_value(value, found)?;
                    }
                }
            }
            Kind::BitPacking { .. } => {}
        }
        let Some(id) = ty.type_id() else { return Ok(()) };
        let earlier = found.places.get(&id).map(|&place| &found.types[place]);
        match self.types.get(&id).or(earlier) {
            None => {
                found.places.insert(id, found.types.len());
                found.types.push(ty.clone());
            }
            Some(declared) => {
                if let Some(difference) = declared.difference(ty) {
                    return Err(TypeError::Redefined { id, difference: Box::new(difference) });
                }
            }
        }
        Ok(())
    }

    fn collect_in_value(&self, value: &ValueType, found: &mut NewTypes) -> Result<(), TypeError> {
        match value {
            ValueType::Struct(ty) => self.collect(ty, found),
            ValueType::Sequence(element) | ValueType::Optional(element) => {
                self.collect_in_value(element, found)
            }
            ValueType::Map { value, .. } => self.collect_in_value(value, found),
            _ => Ok(()),
        }
    }

    fn lookup(&self, id: NonZeroU64) -> Lookup {
        match self.types.get(&id) {
            Some(ty) => Lookup::Found(ty.clone()),
            None if self.faulty.contains(&id) => Lookup::Faulty,
            None => Lookup::Missing,
        }
    }

    /// The type that a graph's `TypeProto` declares. `path` is where it stands, for messages; may be empty.
    ///
    /// # Errors
    /// All faults, each with its path. The list is empty where the only fault is a reference to a declaration that
    /// is itself faulty.
    pub fn value_type(&self, proto: &TypeProto, path: &str) -> Result<ValueType, Faults> {
        let mut faults = FaultList::default();
        let ty = self.value_type_into(proto, &Path::root(path), &mut faults);
        let faults = faults.into_vec();
        ty.filter(|_| faults.is_empty()).ok_or(Faults(faults))
    }

    /// All faults of a graph's `TypeProto`; `path` is where it stands.
    pub fn check_type(&self, proto: &TypeProto, path: &str) -> Vec<Fault> {
        let mut faults = FaultList::default();
        self.value_type_into(proto, &Path::root(path), &mut faults);
        faults.into_vec()
    }

    pub(crate) fn value_type_into(
        &self,
        proto: &TypeProto,
        path: &Path<'_>,
        faults: &mut FaultList,
    ) -> Option<ValueType> {
        let lookup = |id| self.lookup(id);
        TypeReader { lookup: &lookup, files: None, faults }.graph_type(proto, path)
    }

    pub(crate) fn struct_type_into(
        &self,
        proto: &StructTypeProto,
        path: &Path<'_>,
        files: Option<&ExternalResolver>,
        faults: &mut FaultList,
    ) -> Option<Arc<StructType>> {
        let lookup = |id| self.lookup(id);
        TypeReader { lookup: &lookup, files, faults }.layout(proto, path)
    }

    /// The struct type that an encoded value names: an exact reference, or an inline declaration.
    ///
    /// # Errors
    /// As [`value_type`](Catalogue::value_type).
    pub fn struct_type(
        &self,
        proto: &StructTypeProto,
        path: &str,
        files: Option<&ExternalResolver>,
    ) -> Result<Arc<StructType>, Faults> {
        let mut faults = FaultList::default();
        let ty = self.struct_type_into(proto, &Path::root(path), files, &mut faults);
        let faults = faults.into_vec();
        ty.filter(|_| faults.is_empty()).ok_or(Faults(faults))
    }
}

/// What a type to be declared brings along.
#[derive(Default)]
struct NewTypes {
    types: Vec<Arc<StructType>>,
    places: FxHashMap<NonZeroU64, usize>,
    /// Addresses of the types seen.
    visited: FxHashSet<usize>,
}

/// The places of all declarations, each behind those that it refers to. Cycles are faults, and their members faulty.
fn dependencies_first(
    protos: &[StructTypeProto],
    first: &FxHashMap<NonZeroU64, usize>,
    faults: &mut FaultList,
    faulty: &mut FxHashSet<NonZeroU64>,
) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let references: Vec<Vec<usize>> = protos
        .iter()
        .map(|proto| {
            let mut ids = Vec::new();
            references_in_struct(proto, 0, &mut ids);
            let mut seen = FxHashSet::default();
            ids.iter().filter_map(|id| first.get(id).copied()).filter(|&index| seen.insert(index)).collect()
        })
        .collect();
    let mut marks = vec![Mark::New; protos.len()];
    let mut order = Vec::with_capacity(protos.len());
    // A stack of our own: a chain of declarations may be as long as the file.
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for start in 0..protos.len() {
        if marks[start] != Mark::New {
            continue;
        }
        marks[start] = Mark::Open;
        stack.push((start, 0));
        while let Some((index, next)) = stack.last_mut() {
            let Some(&target) = references[*index].get(*next) else {
                marks[*index] = Mark::Done;
                order.push(*index);
                stack.pop();
                continue;
            };
            *next += 1;
            match marks[target] {
                Mark::Done => {}
                Mark::New => {
                    marks[target] = Mark::Open;
                    stack.push((target, 0));
                }
                Mark::Open => {
                    let from = stack.iter().position(|&(index, _)| index == target).unwrap_or(0);
                    let members = stack[from..].iter().map(|&(index, _)| index).chain([target]);
                    let ids: Vec<NonZeroU64> =
                        members.filter_map(|index| catalogue_id(&protos[index]).ok()).collect();
                    faulty.extend(&ids);
                    faults.add(&Path::element_of("struct_types", target), TypeError::Cycle { ids });
                }
            }
        }
    }
    order
}

fn references_in_struct(proto: &StructTypeProto, depth: u32, ids: &mut Vec<NonZeroU64>) {
    match proto.kind() {
        Some(KindProto::TypeRef(id)) => ids.extend(NonZeroU64::new(id)),
        Some(KindProto::Array(array)) => references_in_type(array.element_type(), depth + 1, ids),
        Some(KindProto::Structure(structure)) => {
            for field in structure.field() {
                if let Some(ContentProto::Type(ty)) = field.content() {
                    references_in_type(Some(ty), depth + 1, ids);
                }
            }
        }
        _ => {}
    }
}

fn references_in_type(proto: Option<&TypeProto>, depth: u32, ids: &mut Vec<NonZeroU64>) {
    use type_proto::Value;
    // What is deeper is refused when it is read.
    if depth > MAX_DEPTH {
        return;
    }
    match proto.and_then(TypeProto::value) {
        Some(Value::SequenceType(sequence)) => references_in_type(sequence.elem_type(), depth + 1, ids),
        Some(Value::OptionalType(optional)) => references_in_type(optional.elem_type(), depth + 1, ids),
        Some(Value::MapType(map)) => references_in_type(map.value_type(), depth + 1, ids),
        Some(Value::StructType(ty)) => references_in_struct(ty, depth, ids),
        _ => {}
    }
}
