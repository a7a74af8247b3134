//! One comment per job, however often it runs: looked for, then updated in place or created.

mod head;

use std::time::Duration;

use crate::board::{Board, Hanging};
use crate::{Comment, CommentPolicy, ForgeError};
use head::Head;

/// What became of a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// It hangs, on this page.
    Hangs(Option<String>),
    /// It was not to be posted, and why.
    Left(String),
}

/// How often a comment is looked for anew that was deleted right before it was updated.
const ROUNDS: usize = 3;
/// How long a create that may have taken effect is given to show.
const SETTLING: Duration = Duration::from_secs(1);

/// Posts a comment by its policy. Of several of ours the oldest stays: a second job of the same key, at the same time,
/// comes to the same, takes down what it made itself and updates that one.
///
/// # Errors
/// How the forge refused, or that it cannot be reached.
pub(crate) async fn upsert<B: Board>(board: &B, comment: &Comment) -> Result<Posted, ForgeError> {
    if comment.policy == CommentPolicy::Never {
        return Ok(Posted::Left("comments are turned off".to_owned()));
    }
    let mut last = None;
    for _ in 0..ROUNDS {
        let ours = ours(board, comment).await?;
        let Some((oldest, younger)) = ours.split_first() else {
            if comment.policy == CommentPolicy::OnFail && comment.passed {
                return Ok(Posted::Left("every gate passed, and there is no comment to turn green".to_owned()));
            }
            return create(board, comment).await;
        };
        if let Some(left) = left(&ours, comment) {
            return Ok(left);
        }
        let is_same = comment.policy == CommentPolicy::OnChange && Head::of(&oldest.body).says_what(&comment.state);
        let posted = if is_same {
            Ok(Posted::Left("it would say the same again".to_owned()))
        } else {
            update(board, oldest, comment).await
        };
        match posted {
            Err(error) if is_gone(&error) => last = Some(error),
            Err(error) => return Err(error),
            Ok(posted) => {
                for duplicate in younger {
                    board.delete(duplicate.id).await?;
                }
                return Ok(posted);
            }
        }
    }
    // Somebody deletes it whenever it is found: once more, without looking.
    match last {
        Some(error) => Err(error),
        None => create(board, comment).await,
    }
}

async fn create<B: Board>(board: &B, comment: &Comment) -> Result<Posted, ForgeError> {
    let made = match board.create(&comment.body).await {
        Ok(made) => made,
        Err(error) if is_uncertain(&error) => {
            tracing::debug!(%error, "it is not known whether the comment was created");
            tokio::time::sleep(SETTLING).await;
            match own(ours(board, comment).await?, comment) {
                Some(made) => made,
                None => match board.create(&comment.body).await {
                    Ok(made) => made,
                    Err(error) if is_uncertain(&error) => {
                        tokio::time::sleep(SETTLING).await;
                        own(ours(board, comment).await?, comment).ok_or(error)?
                    }
                    Err(error) => return Err(error),
                },
            }
        }
        Err(error) => return Err(error),
    };
    converge(board, comment, made).await
}

/// After a create: whoever finds an older one of ours takes its own down and updates that.
async fn converge<B: Board>(board: &B, comment: &Comment, made: Hanging) -> Result<Posted, ForgeError> {
    let ours = ours(board, comment).await?;
    let Some(oldest) = ours.first().filter(|oldest| oldest.id < made.id) else {
        return Ok(Posted::Hangs(made.page));
    };
    let posted = match left(ours.get(..1).unwrap_or_default(), comment) {
        Some(left) => left,
        None => match update(board, oldest, comment).await {
            // Whoever deleted the older one leaves this one as the only one.
            Err(error) if is_gone(&error) => return Ok(Posted::Hangs(made.page)),
            posted => posted?,
        },
    };
    board.delete(made.id).await?;
    Ok(posted)
}

async fn update<B: Board>(board: &B, there: &Hanging, comment: &Comment) -> Result<Posted, ForgeError> {
    let updated = board.update(there.id, &comment.body).await?;
    Ok(Posted::Hangs(updated.page.or_else(|| there.page.clone())))
}

/// Those of ours that have the job's marker as their first line, oldest first.
async fn ours<B: Board>(board: &B, comment: &Comment) -> Result<Vec<Hanging>, ForgeError> {
    let mut ours = board.list().await?;
    ours.retain(|there| there.is_ours && Head::of(&there.body).marker == Some(comment.marker.trim()));
    ours.sort_by_key(|there| there.id);
    ours.dedup_by_key(|there| there.id);
    Ok(ours)
}

/// Of those that are there the one whose create was uncertain: it says just what was to be created.
fn own(mut ours: Vec<Hanging>, comment: &Comment) -> Option<Hanging> {
    let at = ours.iter().rposition(|there| there.body.trim() == comment.body.trim())?;
    Some(ours.swap_remove(at))
}

/// Why none is overwritten: a later run has posted.
fn left(ours: &[Hanging], comment: &Comment) -> Option<Posted> {
    let run = Head::of(&comment.body).run?;
    let later = ours.iter().filter_map(|there| Head::of(&there.body).run).filter(|there| *there > run).max()?;
    Some(Posted::Left(format!("the later run {later} has posted there, and this is run {run}")))
}

/// Whether it is open what the forge did.
fn is_uncertain(error: &ForgeError) -> bool {
    match error {
        ForgeError::Unreachable { .. } => true,
        ForgeError::Refused { refusal, .. } => refusal.status >= 500 || refusal.status == 408,
        ForgeError::NoToken { .. } | ForgeError::Stopped { .. } => false,
    }
}

/// Whether somebody deleted what was to be updated.
fn is_gone(error: &ForgeError) -> bool {
    matches!(error, ForgeError::Refused { refusal, .. } if matches!(refusal.status, 404 | 410))
}

#[cfg(test)]
mod tests;
