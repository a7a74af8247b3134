//! What is delivered.

/// When a job's comment is posted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommentPolicy {
    /// At every run.
    #[default]
    Always,
    /// When it says something else than the one that is there ([`Comment::state`]), or there is none.
    OnChange,
    /// When a gate did not pass; a comment that is there is updated in any case, so that it turns green.
    OnFail,
    /// Never.
    Never,
}

/// A job's comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The hidden text that `body` begins with, and by which it is found again.
    pub marker: String,
    /// The hidden text somewhere in `body` that stands for what it says: equal where nothing changed.
    pub state: String,
    /// The Markdown, `marker` first.
    pub body: String,
    /// Whether every gate passed.
    pub passed: bool,
    /// When it is posted.
    pub policy: CommentPolicy,
}

/// How a check run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Green.
    Success,
    /// Red.
    Failure,
    /// Neither: nothing could be said, and nothing is held against the change.
    Neutral,
    /// Stopped by hand, or by a newer run.
    Cancelled,
}

/// What a check run says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckText {
    /// One line.
    pub title: String,
    /// Markdown, at most 65,535 characters.
    pub summary: String,
}

/// All that is delivered at the end of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The comment; `None` posts none.
    pub comment: Option<Comment>,
    /// What the check run ends with; `None` leaves it alone.
    pub check: Option<(Conclusion, CheckText)>,
}
