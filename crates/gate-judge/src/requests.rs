//! Requests in send order.

use std::ops::Deref;
use std::rc::Rc;

use gate_model::Request;

/// Requests in send order, or the first of them. Copies share them: a run may have a million.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Requests<'a> {
    all: Rc<Vec<Request<'a>>>,
    first: usize,
}

impl<'a> Requests<'a> {
    /// All of these.
    pub(crate) fn new(mut all: Vec<Request<'a>>) -> Self {
        all.shrink_to_fit();
        Self { first: all.len(), all: Rc::new(all) }
    }

    /// The first of them, that many at most.
    pub(crate) fn up_to(&self, n: u32) -> Self {
        let first = usize::try_from(n).unwrap_or(usize::MAX).min(self.first);
        Self { all: Rc::clone(&self.all), first }
    }
}

impl<'a> Deref for Requests<'a> {
    type Target = [Request<'a>];
    fn deref(&self) -> &[Request<'a>] {
        self.all.get(..self.first).unwrap_or_default()
    }
}

impl<'a> FromIterator<Request<'a>> for Requests<'a> {
    fn from_iter<I: IntoIterator<Item = Request<'a>>>(requests: I) -> Self {
        Self::new(requests.into_iter().collect())
    }
}
