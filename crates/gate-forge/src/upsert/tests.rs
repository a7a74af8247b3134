//! A wall of comments in memory, on a paused clock.

use std::cell::RefCell;

use super::*;
use crate::Refusal;

const MARKER: &str = "<!-- gate:comment job=perf/gate -->";
const RED: &str = "1111111111111111";
const GREEN: &str = "2222222222222222";

/// What happens to a request before or after it takes effect.
enum Fault {
    /// It has no effect, and this status.
    Before(&'static str, u16),
    /// It takes effect, and has this status.
    After(&'static str, u16),
    /// It finds nothing, although there is something.
    Unseen,
}

#[derive(Default)]
struct Wall {
    hanging: RefCell<Vec<Hanging>>,
    faults: RefCell<Vec<Fault>>,
    log: RefCell<Vec<String>>,
}

impl Wall {
    fn new(hanging: &[(u64, bool, String)], faults: Vec<Fault>) -> Self {
        let hang = |(id, is_ours, body): &(u64, bool, String)| Hanging {
            id: *id,
            body: body.clone(),
            is_ours: *is_ours,
            page: Some(format!("https://forge.example/{id}")),
        };
        let hanging = RefCell::new(hanging.iter().map(hang).collect());
        Self { hanging, faults: RefCell::new(faults), log: RefCell::default() }
    }

    /// The fault of a request that has its turn; whether it takes effect.
    fn fault(&self, request: &str) -> Option<(ForgeError, bool)> {
        let mut faults = self.faults.borrow_mut();
        let at = faults
            .iter()
            .position(|fault| matches!(fault, Fault::Before(of, _) | Fault::After(of, _) if request.starts_with(of)))?;
        let (status, takes_effect) = match faults.remove(at) {
            Fault::Before(_, status) => (status, false),
            Fault::After(_, status) => (status, true),
            Fault::Unseen => unreachable!(),
        };
        let refusal = Refusal { status, message: String::new() };
        Some((ForgeError::Refused { what: request.to_owned(), refusal, hint: None }, takes_effect))
    }

    fn act<T>(&self, request: String, act: impl FnOnce() -> Result<T, ForgeError>) -> Result<T, ForgeError> {
        self.log.borrow_mut().push(request.clone());
        match self.fault(&request) {
            None => act(),
            Some((error, false)) => Err(error),
            Some((error, true)) => act().and(Err(error)),
        }
    }

    /// Ids and bodies of ours.
    fn ours(&self) -> Vec<(u64, String)> {
        let ours = self.hanging.borrow();
        ours.iter().filter(|there| there.is_ours).map(|there| (there.id, there.body.clone())).collect()
    }

    fn log(&self) -> String {
        self.log.borrow().join(", ")
    }
}

fn gone(request: &str) -> ForgeError {
    let refusal = Refusal { status: 404, message: String::new() };
    ForgeError::Refused { what: request.to_owned(), refusal, hint: None }
}

impl Board for Wall {
    fn name(&self) -> String {
        "pull request 7".to_owned()
    }

    async fn list(&self) -> Result<Vec<Hanging>, ForgeError> {
        let unseen = self.faults.borrow().iter().position(|fault| matches!(fault, Fault::Unseen));
        self.act("list".to_owned(), || match unseen {
            Some(at) => {
                self.faults.borrow_mut().remove(at);
                Ok(Vec::new())
            }
            None => Ok(self.hanging.borrow().clone()),
        })
    }

    async fn create(&self, body: &str) -> Result<Hanging, ForgeError> {
        self.act("create".to_owned(), || {
            let id = self.hanging.borrow().iter().map(|there| there.id).max().unwrap_or(0) + 1;
            let page = Some(format!("https://forge.example/{id}"));
            let made = Hanging { id, body: body.to_owned(), is_ours: true, page };
            self.hanging.borrow_mut().push(made.clone());
            Ok(made)
        })
    }

    async fn update(&self, id: u64, body: &str) -> Result<Hanging, ForgeError> {
        self.act(format!("update {id}"), || {
            let mut hanging = self.hanging.borrow_mut();
            let there = hanging.iter_mut().find(|there| there.id == id).ok_or_else(|| gone("update"))?;
            body.clone_into(&mut there.body);
            Ok(there.clone())
        })
    }

    async fn delete(&self, id: u64) -> Result<(), ForgeError> {
        self.act(format!("delete {id}"), || {
            self.hanging.borrow_mut().retain(|there| there.id != id);
            Ok(())
        })
    }
}

fn body(run: u64, digest: &str, text: &str) -> String {
    format!("{MARKER}\n<!-- gate:state run={run} {digest} -->\n\n{text}")
}

fn comment(run: u64, digest: &str, policy: CommentPolicy) -> Comment {
    Comment {
        marker: MARKER.to_owned(),
        state: format!("<!-- gate:state run={run} {digest} -->"),
        body: body(run, digest, "new"),
        passed: digest == GREEN,
        policy,
    }
}

fn hangs(id: u64) -> Result<Posted, ForgeError> {
    Ok(Posted::Hangs(Some(format!("https://forge.example/{id}"))))
}

fn is_left(posted: &Result<Posted, ForgeError>, says: &str) -> bool {
    matches!(posted, Ok(Posted::Left(why)) if why.contains(says))
}

#[tokio::test(start_paused = true)]
async fn a_comment_is_created_once_then_updated_and_a_stranger_s_left_alone() {
    let quoted = body(99, GREEN, "a stranger's");
    let other_job = quoted.replace("perf/gate -->", "perf/gate2 -->");
    let wall = Wall::new(&[(1, false, quoted.clone()), (2, true, other_job.clone())], Vec::new());
    assert_eq!(upsert(&wall, &comment(1, RED, CommentPolicy::Always)).await, hangs(3));
    assert_eq!(upsert(&wall, &comment(2, GREEN, CommentPolicy::Always)).await, hangs(3));
    assert_eq!(wall.log(), "list, create, list, list, update 3");
    assert_eq!(wall.ours(), [(2, other_job), (3, body(2, GREEN, "new"))]);
    assert_eq!(wall.hanging.borrow()[0].body, quoted);
}

#[tokio::test(start_paused = true)]
async fn a_policy_says_when() {
    use CommentPolicy::{Never, OnChange, OnFail};
    let wall = Wall::default();
    assert!(is_left(&upsert(&wall, &comment(1, RED, Never)).await, "turned off"));
    assert!(is_left(&upsert(&wall, &comment(1, GREEN, OnFail)).await, "every gate passed"));
    assert_eq!(wall.ours(), []);
    assert_eq!(upsert(&wall, &comment(1, RED, OnFail)).await, hangs(1));
    // Green again.
    assert_eq!(upsert(&wall, &comment(2, GREEN, OnFail)).await, hangs(1));
    assert_eq!(wall.ours(), [(1, body(2, GREEN, "new"))]);
    // The same with another run's number.
    assert!(is_left(&upsert(&wall, &comment(3, GREEN, OnChange)).await, "the same"));
    assert_eq!(wall.ours(), [(1, body(2, GREEN, "new"))]);
    assert_eq!(upsert(&wall, &comment(4, RED, OnChange)).await, hangs(1));
    assert_eq!(wall.ours(), [(1, body(4, RED, "new"))]);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_run_overwrites_nothing() {
    let wall = Wall::new(&[(1, true, body(10, RED, "old"))], Vec::new());
    let posted = upsert(&wall, &comment(9, GREEN, CommentPolicy::Always)).await;
    assert!(is_left(&posted, "the later run 10"), "{posted:?}");
    assert_eq!(upsert(&wall, &comment(10, GREEN, CommentPolicy::Always)).await, hangs(1));
    // A run without a number overwrites, and is overwritten.
    let mut unnumbered = comment(0, RED, CommentPolicy::Always);
    unnumbered.body = unnumbered.body.replace("run=0 ", "");
    assert_eq!(upsert(&wall, &unnumbered).await, hangs(1));
    assert_eq!(upsert(&wall, &comment(1, GREEN, CommentPolicy::Always)).await, hangs(1));
}

#[tokio::test(start_paused = true)]
async fn duplicates_go_and_the_oldest_stays() {
    let three = [3, 1, 2].map(|id| (id, true, body(1, RED, "old")));
    let wall = Wall::new(&three, Vec::new());
    assert_eq!(upsert(&wall, &comment(2, GREEN, CommentPolicy::Always)).await, hangs(1));
    assert_eq!(wall.ours(), [(1, body(2, GREEN, "new"))]);
}

#[tokio::test(start_paused = true)]
async fn one_that_was_deleted_in_between_is_created_anew() {
    for status in [404, 410] {
        let wall = Wall::new(&[(4, true, body(1, RED, "old"))], vec![Fault::Before("update", status)]);
        let posted = upsert(&Vanishing(&wall), &comment(2, GREEN, CommentPolicy::Always)).await;
        assert_eq!(posted, hangs(1));
        assert_eq!(wall.ours(), [(1, body(2, GREEN, "new"))]);
    }
}

/// A wall whose comments are gone once an update failed.
struct Vanishing<'w>(&'w Wall);

impl Board for Vanishing<'_> {
    fn name(&self) -> String {
        self.0.name()
    }

    async fn list(&self) -> Result<Vec<Hanging>, ForgeError> {
        self.0.list().await
    }

    async fn create(&self, body: &str) -> Result<Hanging, ForgeError> {
        self.0.create(body).await
    }

    async fn update(&self, id: u64, body: &str) -> Result<Hanging, ForgeError> {
        let updated = self.0.update(id, body).await;
        if updated.is_err() {
            self.0.hanging.borrow_mut().clear();
        }
        updated
    }

    async fn delete(&self, id: u64) -> Result<(), ForgeError> {
        self.0.delete(id).await
    }
}

#[tokio::test(start_paused = true)]
async fn an_uncertain_create_ends_with_one_comment() {
    let red = comment(1, RED, CommentPolicy::Always);
    let took_effect = Wall::new(&[], vec![Fault::After("create", 502)]);
    assert_eq!(upsert(&took_effect, &red).await, hangs(1));
    assert_eq!(took_effect.log(), "list, create, list, list");
    let took_none = Wall::new(&[], vec![Fault::Before("create", 502)]);
    assert_eq!(upsert(&took_none, &red).await, hangs(1));
    assert_eq!(took_none.log(), "list, create, list, create, list");
    let both = Wall::new(&[], vec![Fault::Before("create", 502), Fault::After("create", 504)]);
    assert_eq!(upsert(&both, &red).await, hangs(1));
    for wall in [took_effect, took_none, both] {
        assert_eq!(wall.ours(), [(1, red.body.clone())]);
    }
    let never = Wall::new(&[], vec![Fault::Before("create", 502), Fault::Before("create", 502)]);
    let error = upsert(&never, &red).await.unwrap_err();
    assert_eq!(error.to_string().trim(), "create: 502");
    assert_eq!(never.ours(), []);
}

#[tokio::test(start_paused = true)]
async fn one_that_shows_late_leaves_no_second() {
    // The first look after it sees nothing yet; the one after the second create sees both.
    let wall = Wall::new(&[], vec![Fault::After("create", 502)]);
    wall.faults.borrow_mut().extend([Fault::Unseen, Fault::Unseen]);
    assert_eq!(upsert(&wall, &comment(1, RED, CommentPolicy::Always)).await, hangs(1));
    assert_eq!(wall.log(), "list, create, list, create, list, update 1, delete 2");
    assert_eq!(wall.ours(), [(1, body(1, RED, "new"))]);
}

#[tokio::test(start_paused = true)]
async fn whoever_made_the_younger_of_two_takes_it_down() {
    // Another job's comment was made between the look and the create.
    let wall = Wall::new(&[(1, true, body(1, RED, "the other's"))], vec![Fault::Unseen]);
    assert_eq!(upsert(&wall, &comment(1, RED, CommentPolicy::Always)).await, hangs(1));
    assert_eq!(wall.log(), "list, create, list, update 1, delete 2");
    assert_eq!(wall.ours(), [(1, body(1, RED, "new"))]);
    // A later run's stays as it is.
    let wall = Wall::new(&[(1, true, body(2, RED, "the other's"))], vec![Fault::Unseen]);
    let posted = upsert(&wall, &comment(1, RED, CommentPolicy::Always)).await;
    assert!(is_left(&posted, "the later run 2"), "{posted:?}");
    assert_eq!(wall.ours(), [(1, body(2, RED, "the other's"))]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_creates_nothing() {
    let wall = Wall::new(&[(1, true, body(1, RED, "old"))], vec![Fault::Before("update", 403)]);
    assert!(upsert(&wall, &comment(2, RED, CommentPolicy::Always)).await.is_err());
    let listless = Wall::new(&[], vec![Fault::Before("list", 403)]);
    assert!(upsert(&listless, &comment(2, RED, CommentPolicy::Always)).await.is_err());
    assert_eq!((wall.log().as_str(), listless.log().as_str()), ("list, update 1", "list"));
}
