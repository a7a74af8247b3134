//! Where a change may send secrets, and what it may read of the job's environment.
//!
//! Its own spec says both, and whoever wrote it is not trusted with either: a key that goes to another host, or another
//! key that goes anywhere, is given away however the run is judged. What is refused is what the base does not do: a
//! destination it does not name (where the run has a secret on it), a variable it does not read (always: a variable may
//! hold a secret though nothing says so), a server it would not take for the target. Prompts, loads and bodies that differ
//! are the change's to say; a file of which the content is sent counts as a secret unless git tracks it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gate_model::{GateSpec, Place, Tls};
use gate_spec::{Destination, Resolved};

use super::{Base, wrong};
use crate::failure::Failure;
use crate::specs;

impl Base<'_> {
    /// Refuses a head that reaches further than its base, which is told with its name.
    pub(super) fn refuse_reach(
        &self,
        head: &GateSpec,
        now: &Resolved,
        base: Option<(&str, &Resolved)>,
    ) -> Result<(), Failure> {
        self.refuse_variables(head, now, base)?;
        let had_secrets = base.is_some_and(|(_, base)| gate_spec::carries_secrets(base));
        if !gate_spec::carries_secrets(now) && !had_secrets && !self.sends_private(head)? {
            return Ok(());
        }
        self.refuse_destinations(head, base)?;
        self.refuse_impostors(head, base)
    }

    /// A variable that is set and that the base does not read. A gate that is new may read what the others beside it do.
    fn refuse_variables(
        &self,
        head: &GateSpec,
        now: &Resolved,
        base: Option<(&str, &Resolved)>,
    ) -> Result<(), Failure> {
        let known = match base {
            Some((_, base)) => base.variables.clone(),
            None => self.variables(),
        };
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let Some((name, place)) = now.variables.iter().find(|(name, _)| !known.contains_key(*name) && is_set(name))
        else {
            return Ok(());
        };
        let lacks = base.map_or_else(
            || format!("and no spec beside it at {} does", self.short()),
            |(base, _)| format!("which {base} does not"),
        );
        let line = place.line;
        let words = format!("--trust base: {}:{line} reads the variable {name}, {lacks}", head.file);
        Err(Failure::usage(words)
            .hint("a change takes no further values out of the job: merge the reading of it first"))
    }

    /// The variables that the specs of the base read.
    fn variables(&self) -> BTreeMap<String, Place> {
        let texts = self.texts.iter().filter_map(|(path, text)| Some((path, text.as_ref().ok()?)));
        let specs = texts.filter_map(|(path, text)| specs::resolvable(path, text, self.overlays));
        specs.flat_map(|spec| spec.variables).collect()
    }

    /// Whether a file that is sent is none of the repository's: it may hold anything that the machine has.
    fn sends_private(&self, head: &GateSpec) -> Result<bool, Failure> {
        let folder = Path::new(&head.file).parent().unwrap_or(Path::new(""));
        for file in gate_spec::sent_files(head) {
            if !self.repository.is_tracked(&folder.join(file)).map_err(|error| wrong(&error))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn refuse_destinations(&self, head: &GateSpec, base: Option<(&str, &Resolved)>) -> Result<(), Failure> {
        let named = match base {
            Some((_, base)) => gate_spec::destinations(&base.spec),
            // Whoever wrote the command line may send a new gate's secrets where they like.
            None => gate_spec::destinations_of_flags(self.overlays),
        };
        let strange = |one: &&Destination| !named.contains(*one) && !self.allowed.iter().any(|host| host.covers(one));
        let all: BTreeSet<_> = gate_spec::destinations(head);
        let Some(place) = all.iter().find(strange) else { return Ok(()) };
        let lacks = base.map_or_else(
            || format!("there is no such gate at {}", self.short()),
            |(base, _)| format!("{base} does not"),
        );
        let words =
            format!("--trust base: {}: gate {} sends to {place} with secrets, and {lacks}", head.file, head.name);
        let hint = "merge the host to the base branch first, or let the workflow vouch for it";
        Err(Failure::usage(words).hint(format!("{hint}: `--allow-host {}`", place.name())))
    }

    /// A certificate that the base would not take lets another server have what is meant for the target.
    fn refuse_impostors(&self, head: &GateSpec, base: Option<(&str, &Resolved)>) -> Result<(), Failure> {
        let Some((name, base)) = base else { return Ok(()) };
        let arms = [
            ("target", Some(&head.target), Some(&base.spec.target)),
            ("reference", head.reference.as_ref(), base.spec.reference.as_ref()),
        ];
        for (block, now, before) in arms {
            let none = Tls::default();
            let (now, before) = (now.map_or(&none, |arm| &arm.tls), before.map_or(&none, |arm| &arm.tls));
            let key = if now.insecure && !before.insecure {
                "insecure"
            } else if let Some(ca) = &now.ca
                && !before.insecure
                && (now.ca != before.ca || self.is_changed(head, ca)?)
            {
                "ca"
            } else {
                continue;
            };
            let words = format!(
                "--trust base: {}: `{block}.tls.{key}` takes certificates that {name} does not, and whoever shows one is \
                 sent secrets",
                head.file
            );
            return Err(Failure::usage(words).hint("merge it to the base branch first"));
        }
        Ok(())
    }

    /// Whether a file beside the spec is another than in the base.
    fn is_changed(&self, head: &GateSpec, file: &str) -> Result<bool, Failure> {
        let path = Path::new(&head.file).parent().unwrap_or(Path::new("")).join(file);
        self.repository
            .changed_since(&self.commit, &path)
            .map(|changed| !changed.is_empty())
            .map_err(|error| wrong(&error))
    }
}
