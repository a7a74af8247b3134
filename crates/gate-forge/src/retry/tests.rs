//! Waits on a paused clock: no test takes longer than it computes.

use std::collections::VecDeque;

use bytes::Bytes;
use gate_model::Secret;
use http::HeaderMap;

use super::*;

type Said = Result<(u16, &'static str), &'static str>;

const OK: Said = Ok((200, "{}"));

/// Plays answers, and says what came of them, how often was asked, and how many seconds went by.
async fn played(patience: u64, uncertain: Uncertain, answers: &[Said]) -> (Result<u16, String>, usize, u64) {
    let mut answers: VecDeque<Said> = answers.iter().copied().collect();
    let started = Instant::now();
    let redactor = Redactor::new(&[Secret::new("ghs_hunter22")]);
    let retry = Retry::new(started + Duration::from_secs(patience), redactor);
    let mut asked = 0;
    let end = retry
        .ask("list the comments", uncertain, |_| {
            asked += 1;
            let said = answers.pop_front().unwrap();
            async move {
                let (status, text) = said.map_err(str::to_owned)?;
                let mut headers = HeaderMap::new();
                if let Some(after) = text.strip_prefix("after ") {
                    headers.insert("retry-after", after.parse().unwrap());
                }
                Ok(Answer { status, headers, body: Bytes::from_static(text.as_bytes()) })
            }
        })
        .await;
    assert!(answers.is_empty(), "{} answers were not asked for", answers.len());
    let end = end.map(|answer| answer.status).map_err(|error| error.to_string());
    (end, asked, started.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_after_one_two_and_four_seconds() {
    let lost = Err("the connection was lost");
    let (end, asked, took) = played(60, Uncertain::AskAgain, &[lost, Ok((502, "")), lost, OK]).await;
    assert_eq!((end, asked, took), (Ok(200), 4, 7));
    let (end, asked, took) = played(60, Uncertain::AskAgain, &[Ok((502, "")); 4]).await;
    assert_eq!((end, asked, took), (Err("list the comments: 502 bad gateway".to_owned()), 4, 7));
}

#[tokio::test(start_paused = true)]
async fn a_create_is_not_repeated_unless_nothing_was_created() {
    let (end, asked, took) = played(60, Uncertain::GiveUp, &[Ok((502, ""))]).await;
    assert_eq!((end, asked, took), (Err("list the comments: 502 bad gateway".to_owned()), 1, 0));
    let (end, asked, _) = played(60, Uncertain::GiveUp, &[Err("lost ghs_hunter22")]).await;
    assert_eq!((end, asked), (Err("list the comments: lost ***".to_owned()), 1));
    let (end, asked, took) = played(60, Uncertain::GiveUp, &[Ok((429, "after 9")), OK]).await;
    assert_eq!((end, asked, took), (Ok(200), 2, 9));
}

#[tokio::test(start_paused = true)]
async fn a_secondary_limit_waits_a_minute_then_two() {
    let secondary = Ok((403, "You have exceeded a secondary rate limit"));
    let (end, asked, took) = played(600, Uncertain::GiveUp, &[secondary, secondary, OK]).await;
    assert_eq!((end, asked, took), (Ok(200), 3, 180));
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_patience_is_not_begun() {
    let (end, asked, took) = played(60, Uncertain::AskAgain, &[Ok((429, "after 3600"))]).await;
    let says = "list the comments: 429 after 3600 (the forge wants to be left alone for 3600 s)";
    assert_eq!((end, asked, took), (Err(says.to_owned()), 1, 0));
    let (end, asked, took) = played(2, Uncertain::AskAgain, &[Ok((502, "")), Ok((502, ""))]).await;
    assert_eq!((end, asked, took), (Err("list the comments: 502 bad gateway".to_owned()), 2, 1));
    let (end, asked, _) = played(0, Uncertain::AskAgain, &[]).await;
    assert_eq!((end, asked), (Err("list the comments: no time is left to ask the forge".to_owned()), 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_final_is_asked_once() {
    for status in [400, 401, 403, 404, 410, 422] {
        let (end, asked, took) = played(60, Uncertain::AskAgain, &[Ok((status, "no"))]).await;
        assert_eq!((end, asked, took), (Err(format!("list the comments: {status} no")), 1, 0));
    }
}
