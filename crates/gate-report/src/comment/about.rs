//! What a comment says beside its verdicts.

use gate_model::ExitCode;

/// The job that a comment is of.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// What tells this job's comment from another job's.
    pub job: Option<&'a str>,
    /// The number of this run of the workflow or pipeline.
    pub run: Option<u64>,
    /// The id of the commit that was measured; its first 12 characters are shown.
    pub commit: Option<&'a str>,
    /// The page of the job. What does not begin with `http://` or `https://` is left out.
    pub page: Option<&'a str>,
    /// The page from which the reports can be fetched. What does not begin with `http://` or `https://` is left out.
    pub artifact: Option<&'a str>,
    /// Who made the verdicts.
    pub source: Source,
    /// How a job ended that judged nothing; it heads the comment where there is no verdict.
    pub unjudged: Option<ExitCode>,
    /// Sentences on the job itself, such as what its token may not do; at most ten are shown.
    pub advice: &'a [String],
}

/// Who made the verdicts that a comment shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The job that posts them.
    #[default]
    Own,
    /// The pull request's own job, whose files another one posts: the comment says that they can say anything.
    Elsewhere,
}
