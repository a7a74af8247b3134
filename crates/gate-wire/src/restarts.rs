//! Streams that begin again in their middle, told by what their chunks have.

/// The most choices that are followed.
const CHOICES: usize = 64;

/// What a chunk says of one choice.
#[derive(Clone, Copy, Default)]
pub(crate) struct Seen<'a> {
    /// The answer's id.
    pub(crate) id: Option<&'a str>,
    pub(crate) has_role: bool,
    pub(crate) has_content: bool,
    pub(crate) has_finished: bool,
}

/// Tells whether chunks are of one stream.
///
/// A stream begins again where a chunk has a role and nothing else after content without one: many servers repeat
/// the role with all content, or with the finish reason. Or where content of one id follows on content of another.
/// Both ids must be seen twice in a row, since some servers give every chunk its own.
#[derive(Clone, Default)]
pub(crate) struct Restarts {
    choices: Vec<Followed>,
}

#[derive(Clone, Default)]
struct Followed {
    index: u64,
    /// The id of the latest content.
    id: String,
    /// Chunks with content in a row that had this id.
    with_id: u32,
    /// Whether an earlier id was seen more than once.
    had_steady_id: bool,
    /// Whether there was content in a chunk without a role.
    had_content: bool,
}

impl Restarts {
    /// Takes a chunk of a choice; whether the stream begins again with it.
    pub(crate) fn chunk(&mut self, index: u64, seen: Seen<'_>) -> bool {
        let at = self.choices.iter().position(|choice| choice.index == index);
        let Some(choice) = (match at {
            Some(at) => self.choices.get_mut(at),
            None if self.choices.len() == CHOICES => None,
            None => {
                self.choices.push(Followed { index, ..Followed::default() });
                self.choices.last_mut()
            }
        }) else {
            return false;
        };
        if choice.had_content && seen.has_role && !seen.has_content && !seen.has_finished {
            *choice = Followed { index, ..Followed::default() };
            return true;
        }
        if !seen.has_content {
            return false;
        }
        choice.had_content |= !seen.has_role;
        let Some(id) = seen.id else { return false };
        if choice.id == id {
            choice.with_id = choice.with_id.saturating_add(1);
            return choice.with_id == 2 && std::mem::take(&mut choice.had_steady_id);
        }
        choice.had_steady_id |= choice.with_id >= 2;
        id.clone_into(&mut choice.id);
        choice.with_id = 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a stream begins again, of chunks given as choice, id and what they have: `r`ole, `c`ontent, `f`inish.
    fn restarts(chunks: &[(u64, &str, &str)]) -> Vec<usize> {
        let mut restarts = Restarts::default();
        let mut begins = |(choice, id, has): &(u64, &str, &str)| {
            let id = (!id.is_empty()).then_some(*id);
            let [has_role, has_content, has_finished] = ["r", "c", "f"].map(|what| has.contains(what));
            restarts.chunk(*choice, Seen { id, has_role, has_content, has_finished })
        };
        (0..).zip(chunks).filter(|(_, chunk)| begins(chunk)).map(|(at, _)| at).collect()
    }

    #[test]
    fn a_role_alone_after_content_begins_again() {
        assert_eq!(restarts(&[(0, "a", "r"), (0, "a", "c"), (0, "a", "r"), (0, "a", "c"), (0, "a", "r")]), [2, 4]);
        // The role of every chunk, of the first with content, of the last, or of another choice.
        assert!(restarts(&[(0, "", "rc"), (0, "", "r"), (0, "", "rc"), (0, "", "r")]).is_empty());
        assert!(restarts(&[(0, "", "r"), (0, "", "r"), (0, "", "c"), (0, "", "rf")]).is_empty());
        assert!(restarts(&[(0, "", "r"), (0, "", "c"), (1, "", "r"), (1, "", "c"), (0, "", "c")]).is_empty());
    }

    #[test]
    fn content_of_another_id_begins_again_once_both_have_lasted() {
        let steady = [(0, "a", "c"), (0, "a", "c"), (0, "b", "c"), (0, "b", "c"), (0, "b", "c")];
        assert_eq!(restarts(&steady), [3]);
        // With a role, it is counted by that alone.
        let role = [(0, "a", "c"), (0, "a", "c"), (0, "b", "r"), (0, "b", "c"), (0, "b", "c")];
        assert_eq!(restarts(&role), [2]);
        for own in [
            [(0, "a", "c"), (0, "b", "c"), (0, "c", "c"), (0, "d", "c")],
            // Without content, or of choices with an id each, or one chunk alone.
            [(0, "a", "c"), (0, "a", "c"), (0, "b", ""), (0, "b", "f")],
            [(0, "a", "c"), (1, "b", "c"), (0, "a", "c"), (1, "b", "c")],
            [(0, "a", "c"), (0, "a", "c"), (0, "b", "c"), (0, "", "c")],
        ] {
            assert!(restarts(&own).is_empty(), "{own:?}");
        }
    }

    #[test]
    fn choices_beyond_a_number_are_not_followed() {
        let mut restarts = Restarts::default();
        for index in 0..1000 {
            restarts.chunk(index, Seen { has_content: true, ..Seen::default() });
        }
        assert_eq!(restarts.choices.len(), CHOICES);
    }
}
