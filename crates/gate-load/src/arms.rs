//! What each arm of a run has of its own.

use gate_model::Arm;

use crate::LoadError;

/// One for the target and, side by side, one for the reference.
#[derive(Clone)]
pub(crate) struct Arms<T> {
    pub(crate) target: T,
    pub(crate) reference: Option<T>,
}

impl<T> Arms<T> {
    /// An arm's.
    pub(crate) fn get(&self, arm: Arm) -> Result<&T, LoadError> {
        match arm {
            Arm::Target => Ok(&self.target),
            Arm::Reference => self.reference.as_ref().ok_or(LoadError::NoReference),
        }
    }

    /// The arms there are, the target first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Arm, &T)> {
        let reference = self.reference.as_ref().map(|reference| (Arm::Reference, reference));
        std::iter::once((Arm::Target, &self.target)).chain(reference)
    }

    /// An arm's, to be changed.
    pub(crate) fn get_mut(&mut self, arm: Arm) -> Result<&mut T, LoadError> {
        match arm {
            Arm::Target => Ok(&mut self.target),
            Arm::Reference => self.reference.as_mut().ok_or(LoadError::NoReference),
        }
    }

    /// Something else for each arm there is.
    pub(crate) fn map<U>(self, mut of: impl FnMut(T) -> U) -> Arms<U> {
        Arms { target: of(self.target), reference: self.reference.map(of) }
    }

    /// Something else for each arm there is, unless it fails for one.
    pub(crate) fn try_map<U, E>(self, mut of: impl FnMut(Arm, T) -> Result<U, E>) -> Result<Arms<U>, E> {
        let target = of(Arm::Target, self.target)?;
        let reference = self.reference.map(|reference| of(Arm::Reference, reference)).transpose()?;
        Ok(Arms { target, reference })
    }
}
