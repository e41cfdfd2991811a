//! Saving: the structure anew, payloads where they are or written out.

use std::io::{self, Read, Write};
use std::path::{Path as FilePath, PathBuf};

use heirloom_mem::{Bytes, Storage};
use heirloom_proto::{ExternalLocation, ExternalResolver, ModelProto, Payload};
use heirloom_types::{Constant, constant_from_proto};
use rustc_hash::FxHashMap;

use crate::model::{folder_of, import_model};
use crate::path::FaultList;
use crate::payloads::{Holder, Role, payloads, payloads_mut};
use crate::{Error, Faults, Model, Problem};

/// How to save.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SaveOptions {
    /// What becomes of payloads.
    pub external: External,
    /// Writes model files of more than 2 GiB, which other ONNX readers cannot open.
    pub allow_over_2gib: bool,
}

impl SaveOptions {
    /// The same with another place for payloads.
    #[must_use]
    pub fn external(mut self, external: External) -> SaveOptions {
        self.external = external;
        self
    }

    /// The same with another `allow_over_2gib`.
    #[must_use]
    pub fn allow_over_2gib(mut self, allow: bool) -> SaveOptions {
        self.allow_over_2gib = allow;
        self
    }
}

/// What becomes of payloads when a model is saved.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum External {
    /// They stay where they are: inline ones in the model file, external ones in their files, which are not touched.
    #[default]
    Keep,
    /// All of them go into the model file.
    Inline,
    /// Those of initializers, and all that are external now, go into one file beside the model.
    File(PayloadFile),
}

/// The file that payloads are written to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PayloadFile {
    /// Its path relative to the model's folder; `None`: the model's file name with `.data` behind it.
    pub location: Option<String>,
    /// Inline payloads of fewer bytes stay in the model file.
    pub threshold: u64,
    /// Payloads of this many bytes and more start at multiples of it.
    pub large: u64,
    /// Smaller ones start at multiples of this.
    pub small: u64,
}

impl Default for PayloadFile {
    fn default() -> PayloadFile {
        PayloadFile { location: None, threshold: 1 << 10, large: 64 << 10, small: 64 }
    }
}

impl PayloadFile {
    /// The same under another path relative to the model's folder.
    #[must_use]
    pub fn location(mut self, location: impl Into<String>) -> PayloadFile {
        self.location = Some(location.into());
        self
    }

    /// The same with other multiples that large and small payloads start at; 0 counts as 1.
    #[must_use]
    pub fn alignment(mut self, large: u64, small: u64) -> PayloadFile {
        (self.large, self.small) = (large, small);
        self
    }

    /// The same with another threshold, in bytes.
    #[must_use]
    pub fn threshold(mut self, bytes: u64) -> PayloadFile {
        self.threshold = bytes;
        self
    }
}

impl Model {
    /// Writes the model to a file, replacing the one at `path` once the new one is complete and durable. What
    /// nothing changed since the model was read is written as it was, byte for byte. Payloads go from where they
    /// lie to the file; none is copied in memory.
    ///
    /// With [`External::File`] the file of payloads is replaced first, then the model file.
    ///
    /// # Errors
    /// Before a byte is written: when the model file would exceed 2 GiB and that is not allowed; when external
    /// payloads are kept and could not be reached from the new folder, or one of their files would be overwritten;
    /// when a payload is needed and not at hand. And those of the file system.
    pub fn save(&self, path: impl AsRef<FilePath>, options: &SaveOptions) -> Result<(), Error> {
        save(self.proto(), self.resolver(), path.as_ref(), options)
    }
}

/// Writes a model that is given as a message, as [`Model::save`]; it is checked as a whole before that.
///
/// # Errors
/// As [`Model::save`], and when the model breaks rules.
pub fn save_proto(
    proto: &ModelProto,
    resolver: &ExternalResolver,
    path: impl AsRef<FilePath>,
    options: &SaveOptions,
) -> Result<(), Error> {
    let mut faults = FaultList::default();
    import_model(proto, resolver, true, false, &mut faults);
    if !faults.is_empty() {
        return Err(Error::Invalid { file: None, faults: Faults(faults.into_vec()) });
    }
    save(proto, resolver, path.as_ref(), options)
}

fn save(
    proto: &ModelProto,
    resolver: &ExternalResolver,
    path: &FilePath,
    options: &SaveOptions,
) -> Result<(), Error> {
    let write_options = heirloom_proto::SaveOptions::default().allow_over_2gib(options.allow_over_2gib);
    let write = |proto: &ModelProto| Ok(heirloom_proto::save(proto, path, &write_options)?);
    match &options.external {
        External::Keep => {
            keep(proto, resolver, path)?;
            write(proto)
        }
        External::Inline => write(&inlined(proto, resolver)?),
        External::File(file) => {
            let (proto, plan) = moved(proto, resolver, path, file)?;
            // Nothing is written where the model file could not be.
            heirloom_proto::check_size(&proto, path, &write_options)?;
            plan.write()?;
            write(&proto)
        }
    }
}

fn external_error(name: &str, error: impl std::fmt::Display) -> Error {
    let problem = Problem::External { name: name.into(), reason: error.to_string() };
    Error::call("save", problem)
}

/// Whether the files of external payloads are the same as seen from the new folder, and none is the target.
fn keep(proto: &ModelProto, resolver: &ExternalResolver, path: &FilePath) -> Result<(), Error> {
    let Some(base) = resolver.base_dir() else { return Ok(()) };
    let real = |path: &FilePath| path.canonicalize().ok();
    let target = real(path);
    let is_same_folder = real(folder_of(path)).as_deref() == Some(base);
    let mut seen = rustc_hash::FxHashSet::default();
    let mut outcome = Ok(());
    payloads(proto, &mut |_, holder| {
        let Ok(Payload::External(place)) = holder.payload() else { return };
        if outcome.is_err() || !seen.insert(place.location.clone()) {
            return;
        }
        // A file that is not there cannot be lost; what reads it will say so.
        let Ok(source) = resolver.path(&place.location) else { return };
        if target.as_ref() == Some(&source) {
            outcome = Err(external_error(holder.name(), "the model would overwrite its own payloads"));
        } else if !is_same_folder && real(&folder_of(path).join(&place.location)) != Some(source) {
            outcome = Err(Error::ExternalElsewhere { path: path.into(), location: place.location });
        }
    });
    outcome
}

/// The bytes of a payload where they lie; `None` for strings.
fn bytes_of(holder: &Holder<'_>, resolver: &ExternalResolver) -> Result<Option<Bytes>, Error> {
    match holder {
        Holder::Tensor(tensor) => match constant_from_proto(tensor, Some(resolver)) {
            Ok(Constant::Strings(_)) => Ok(None),
            Ok(Constant::Tensor(dense)) => match dense.into_storage() {
                Storage::Dense(bytes) => Ok(Some(bytes)),
                _ => unreachable!("tensors of messages are dense"),
            },
            Err(error) => Err(Error::call(format!("save `{}`", tensor.name()), Problem::Tensor(error))),
        },
        Holder::Encoded(value) => {
            let bytes = value.payload_bytes(resolver);
            bytes.map(Some).map_err(|error| external_error(value.name(), error))
        }
    }
}

fn is_external(holder: &Holder<'_>) -> bool {
    matches!(holder.payload(), Ok(Payload::External(_)))
}

/// The model with every payload in it.
fn inlined(proto: &ModelProto, resolver: &ExternalResolver) -> Result<ModelProto, Error> {
    let mut proto = proto.clone();
    payloads_mut(&mut proto, &|_, holder| is_external(holder), &mut |mut holder| {
        if let Some(bytes) = bytes_of(&holder.read(), resolver)? {
            holder.set_inline(bytes);
        }
        Ok(())
    })?;
    Ok(proto)
}

/// Payloads that go into a new file, with their places.
struct Plan {
    path: PathBuf,
    parts: Vec<(u64, Bytes)>,
}

impl Plan {
    fn write(&self) -> Result<(), Error> {
        let outcome = heirloom_proto::replace(&self.path, |file| {
            let mut file = io::BufWriter::with_capacity(64 << 10, file);
            let mut at = 0u64;
            for (offset, bytes) in &self.parts {
                io::copy(&mut io::repeat(0).take(offset - at), &mut file)?;
                // Large pieces go past the buffer.
                file.write_all(bytes)?;
                at = offset + wide(bytes.len());
            }
            file.flush()
        });
        outcome.map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

fn wide(length: usize) -> u64 {
    u64::try_from(length).expect("lengths have at most 64 bits")
}

/// The model with payloads in a new file, and what is to be written there.
fn moved(
    proto: &ModelProto,
    resolver: &ExternalResolver,
    path: &FilePath,
    file: &PayloadFile,
) -> Result<(ModelProto, Plan), Error> {
    let location = match &file.location {
        Some(location) => location.clone(),
        None => {
            let name = path.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy());
            format!("{name}.data")
        }
    };
    heirloom_proto::external::check_location(&location).map_err(|error| external_error(&location, error))?;
    let mut plan = Plan { path: folder_of(path).join(&location), parts: Vec::new() };
    // A folder below that is a link could lead anywhere.
    let real = |path: &FilePath| folder_of(path).canonicalize().ok();
    let (inside, base) = (real(&plan.path), real(path));
    if !inside.zip(base).is_some_and(|(inside, base)| inside.starts_with(base)) {
        return Err(external_error(
            &location,
            "the folder is not there, or a link leads out of the model's folder",
        ));
    }
    if plan.path == path {
        return Err(external_error(&location, "the payloads need another file than the model"));
    }
    let mut end = 0u64;
    // Equal pieces of one region, such as tied weights, are written once.
    let mut written: FxHashMap<(usize, usize), u64> = FxHashMap::default();
    let goes_out = |role: Role, holder: &Holder<'_>| {
        is_external(holder) || (role == Role::Initializer && holder.inline_bytes() >= file.threshold.max(1))
    };
    let mut proto = proto.clone();
    payloads_mut(&mut proto, &goes_out, &mut |mut holder| {
        let Some(bytes) = bytes_of(&holder.read(), resolver)? else { return Ok(()) };
        let length = wide(bytes.len());
        let offset = *written.entry((bytes.address(), bytes.len())).or_insert_with(|| {
            let multiple = if length >= file.large { file.large } else { file.small };
            let offset = end.next_multiple_of(multiple.max(1));
            end = offset + length;
            plan.parts.push((offset, bytes));
            offset
        });
        let place = ExternalLocation::new(&location, offset, length);
        let place = place.map_err(|error| external_error(holder.read().name(), error))?;
        holder.set_external(&place);
        Ok(())
    })?;
    Ok((proto, plan))
}
