//! Which baselines are chosen, and why none is.

use std::fs;
use std::path::Path;

use gate_baseline::{Ask, BaselineError, Choice, Repository, Shelf, Surroundings, choose, with_tokens};
use gate_model::{Baseline, BaselineFrom, BaselineKey, Commit, Difference, GateSpec, NoBaseline, Noise, PassedOver};

use crate::support::{
    World, at, commit_in, folder_shelf, git, keep, kept, kept_few, noted, onto, run_of, spec, the_key,
};

fn asking(from: BaselineFrom, fallback: &[BaselineFrom]) -> GateSpec {
    let mut spec = spec();
    spec.baseline.from = from;
    spec.baseline.fallback = fallback.to_vec();
    spec
}

fn chosen_by(spec: &GateSpec, shelf: &Shelf, folder: &Path, surroundings: &Surroundings) -> Choice {
    try_chosen(spec, shelf, folder, surroundings, None).unwrap()
}

fn try_chosen(
    spec: &GateSpec,
    shelf: &Shelf,
    folder: &Path,
    surroundings: &Surroundings,
    run_id: Option<&str>,
) -> Result<Choice, BaselineError> {
    let repository = Repository::of(folder);
    choose(&Ask { spec, key: &the_key(), surroundings, folder, run_id }, shelf, repository.as_ref())
}

/// Without history, as that of this run where it is one.
fn chosen_in(folder: &Path, from: BaselineFrom, run_id: Option<&str>) -> Choice {
    let spec = asking(from, &[]);
    try_chosen(&spec, &folder_shelf(folder), folder, &Surroundings::default(), run_id).unwrap()
}

fn pin(id: &str) -> BaselineFrom {
    BaselineFrom::Pin(id.to_owned())
}

fn file(path: &str) -> BaselineFrom {
    BaselineFrom::File(path.to_owned())
}

fn ids(choice: &Choice) -> Vec<(&str, Option<u32>)> {
    let used = &choice.prior.chosen.as_ref().unwrap().used;
    assert_eq!(
        used.iter().map(|used| used.id.as_str()).collect::<Vec<_>>(),
        choice.prior.baselines.iter().map(Baseline::id).collect::<Vec<_>>()
    );
    used.iter().map(|used| (used.id.as_str(), used.behind)).collect()
}

fn only_why(choice: &Choice) -> &NoBaseline {
    let chosen = choice.prior.chosen.as_ref().unwrap();
    assert!(choice.prior.baselines.is_empty() && chosen.used.is_empty() && chosen.by.is_none(), "{chosen:?}");
    let [PassedOver { why, .. }] = &chosen.passed_over[..] else { panic!("{chosen:?}") };
    why
}

/// A run kept of each commit, as a job on it would: one a minute, in their order.
fn keep_each(shelf: &mut Shelf, prefix: &str, commits: &[String]) {
    for (number, id) in commits.iter().enumerate() {
        let parents: Vec<String> = commits[..number].iter().rev().cloned().collect();
        shelf.save(&kept(&format!("{prefix}{number}"), number as u32, Some(noted(id, &parents)))).unwrap();
    }
}

const MERGE_BASE: BaselineFrom = BaselineFrom::MergeBase;

#[test]
fn the_newest_at_or_before_the_fork_point_and_no_other() {
    let (world, main) = World::with_main(10);
    let work = world.work();
    let mut shelf = folder_shelf(&world.path("store"));
    keep_each(&mut shelf, "m", &main);
    git(&work, &["checkout", "--quiet", "-b", "change", &main[7]]);
    let own = [world.commit("c0"), world.commit("c1")];
    for (number, id) in own.iter().enumerate() {
        shelf.save(&kept(&format!("own{number}"), 100 + number as u32, Some(noted(id, &main[..0])))).unwrap();
    }
    let choice = chosen_by(&asking(MERGE_BASE, &[]), &shelf, &work, &onto("main"));
    let expected = [("m7", Some(0)), ("m6", Some(1)), ("m5", Some(2)), ("m4", Some(3)), ("m3", Some(4))];
    assert_eq!(ids(&choice), expected, "neither the tip nor the change's own branch");
    let chosen = choice.prior.chosen.as_ref().unwrap();
    assert_eq!((chosen.fork.as_ref(), &chosen.by), (Some(&main[7]), &Some(MERGE_BASE)));
    assert_eq!((chosen.used[0].commit.as_ref(), chosen.used[0].started.as_str()), (Some(&main[7]), at(7).as_str()));
    assert!(chosen.store.ends_with(".gate/baselines") && chosen.passed_over.is_empty());
    let history: Vec<_> = choice.prior.history.iter().map(Baseline::id).collect();
    assert_eq!(history, ["m7", "m6", "m5", "m4", "m3", "m2", "m1", "m0"], "the same line, further back");

    let mut fewer = asking(MERGE_BASE, &[]);
    fewer.baseline.runs = 2;
    assert_eq!(ids(&chosen_by(&fewer, &shelf, &work, &onto("main"))), expected[..2]);
    assert_eq!(ids(&chosen_by(&fewer, &shelf, &work, &Surroundings::default())), expected[..2]);
    // A merge checkout by hand: the fork point is the base as it was merged.
    git(&work, &["merge", "--quiet", "-m", "merge", "origin/main"]);
    assert_eq!(ids(&chosen_by(&fewer, &shelf, &work, &onto("main"))), [("m9", Some(0)), ("m8", Some(1))]);
}

#[test]
fn several_runs_of_a_commit_count_newest_first_and_dirty_ones_not() {
    let (world, main) = World::with_main(2);
    let mut shelf = folder_shelf(&world.path("store"));
    keep_each(&mut shelf, "m", &main);
    shelf.save(&kept("again", 30, Some(noted(&main[0], &[])))).unwrap();
    let dirty = Commit { dirty: true, ..noted(&main[1], &main[..1]) };
    shelf.save(&kept("dirty", 40, Some(dirty))).unwrap();
    shelf.save(&kept("nowhere", 50, None)).unwrap();
    let choice = chosen_by(&asking(MERGE_BASE, &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(ids(&choice), [("m1", Some(0)), ("again", Some(1)), ("m0", Some(1))]);
    let choice = chosen_by(&asking(BaselineFrom::Branch("main".to_owned()), &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(ids(&choice).len(), 3);
    let choice = chosen_by(&asking(BaselineFrom::Last(2), &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(ids(&choice), [("nowhere", None), ("dirty", None)]);
    assert_eq!(choice.prior.history.len(), 5);
}

#[test]
fn shallow_clones_find_what_stored_runs_know() {
    let (world, main) = World::with_main(8);
    let mut shelf = folder_shelf(&world.path("store"));
    keep_each(&mut shelf, "m", &main[..7]);
    for depth in ["1", "3"] {
        // The tip has no run of its own; the parent that it names has, and knows what came before it.
        let clone = world.clone(&format!("depth{depth}"), &[&format!("--depth={depth}")]);
        let choice = chosen_by(&asking(MERGE_BASE, &[]), &shelf, &clone, &onto("main"));
        let expected = [("m6", Some(1)), ("m5", Some(2)), ("m4", Some(3)), ("m3", Some(4)), ("m2", Some(5))];
        assert_eq!(ids(&choice), expected, "depth {depth}");
    }
    // Without one that knows, the cut is said.
    let clone = world.clone("cut", &["--depth=1"]);
    let mut old = folder_shelf(&world.path("old"));
    keep_each(&mut old, "m", &main[..2]);
    let choice = chosen_by(&asking(MERGE_BASE, &[]), &old, &clone, &onto("main"));
    assert_eq!(only_why(&choice), &NoBaseline::NotInHistory { saved: 2, shallow: true });
}

#[test]
fn a_pull_request_checked_out_alone_finds_its_base() {
    let (world, main) = World::with_main(4);
    let work = world.work();
    git(&work, &["checkout", "--quiet", "-b", "change", &main[1]]);
    let own = world.commit("c0");
    git(&work, &["checkout", "--quiet", "--detach", &main[2]]);
    git(&work, &["merge", "--quiet", "--no-ff", "-m", "merge", "change"]);
    git(&work, &["push", "--quiet", "origin", "HEAD:refs/pull/7/merge"]);
    let clone = world.path("clone");
    fs::create_dir(&clone).unwrap();
    git(&clone, &["init", "--quiet"]);
    git(&clone, &["remote", "add", "origin", &world.url()]);
    git(&clone, &["fetch", "--quiet", "--depth=1", "origin", "+refs/pull/7/merge:refs/remotes/pull/7/merge"]);
    git(&clone, &["checkout", "--quiet", "--detach", "refs/remotes/pull/7/merge"]);
    let mut shelf = folder_shelf(&world.path("store"));
    keep_each(&mut shelf, "m", &main);
    shelf.save(&kept("own", 50, Some(noted(&own, &main[..2])))).unwrap();
    let choice = chosen_by(&asking(MERGE_BASE, &[]), &shelf, &clone, &onto("main"));
    assert_eq!(ids(&choice), [("m2", Some(0)), ("m1", Some(1)), ("m0", Some(2))], "m3 came after the merge was made");
}

#[test]
fn a_rewritten_branch_has_none_of_its_old_runs() {
    let (world, main) = World::with_main(3);
    let work = world.work();
    let mut shelf = folder_shelf(&world.path("store"));
    keep_each(&mut shelf, "m", &main);
    git(&work, &["checkout", "--quiet", "--orphan", "new"]);
    let rewritten = commit_in(&work, "rewritten");
    git(&work, &["push", "--quiet", "--force", "origin", "new:main"]);
    git(&work, &["fetch", "--quiet", "origin"]);
    let choice = chosen_by(&asking(MERGE_BASE, &[BaselineFrom::Last(1)]), &shelf, &work, &onto("main"));
    let chosen = choice.prior.chosen.as_ref().unwrap();
    let why = NoBaseline::NotInHistory { saved: 3, shallow: false };
    assert_eq!(chosen.passed_over, [PassedOver { from: MERGE_BASE, why }]);
    assert_eq!((ids(&choice), &chosen.by), (vec![("m2", None)], &Some(BaselineFrom::Last(1))));
    assert_eq!(chosen.fork, None);
    shelf.save(&kept("new", 60, Some(noted(&rewritten, &[])))).unwrap();
    let choice = chosen_by(&asking(MERGE_BASE, &[]), &shelf, &work, &onto("main"));
    assert_eq!(ids(&choice), [("new", Some(0))]);
}

#[test]
fn a_branch_is_followed_from_its_tip() {
    let (world, main) = World::with_main(3);
    let work = world.work();
    let mut shelf = folder_shelf(&world.path("store"));
    keep_each(&mut shelf, "m", &main);
    git(&work, &["checkout", "--quiet", "-b", "change", &main[0]]);
    world.commit("c0");
    let branch = |name: &str| BaselineFrom::Branch(name.to_owned());
    let choice = chosen_by(&asking(branch("main"), &[]), &shelf, &work, &onto("main"));
    assert_eq!(ids(&choice), [("m2", Some(0)), ("m1", Some(1)), ("m0", Some(2))]);
    assert_eq!(choice.prior.chosen.as_ref().unwrap().fork.as_ref(), Some(&main[2]));
    for name in ["gone", "--all", "main~1"] {
        let choice = chosen_by(&asking(branch(name), &[]), &shelf, &work, &onto("main"));
        let NoBaseline::NoHistory(why) = only_why(&choice) else { panic!("{choice:?}") };
        assert_eq!(*why, format!("branch `{name}` is not in this clone: fetch it before the gate runs"));
    }
}

#[test]
fn without_a_repository_only_history_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    shelf.save(&kept("a", 1, None)).unwrap();
    let fallbacks =
        [BaselineFrom::Branch("main".to_owned()), BaselineFrom::Pin("zz".to_owned()), BaselineFrom::Last(3)];
    let choice = chosen_by(&asking(MERGE_BASE, &fallbacks), &shelf, folder.path(), &onto("main"));
    let chosen = choice.prior.chosen.as_ref().unwrap();
    assert_eq!(ids(&choice), [("a", None)]);
    assert_eq!(chosen.by, Some(BaselineFrom::Last(3)));
    let [first, second, third] = &chosen.passed_over[..] else { panic!("{chosen:?}") };
    for passed in [first, second] {
        assert!(
            matches!(&passed.why, NoBaseline::NoHistory(why) if why.starts_with("failed to find a git repository at")),
            "{passed:?}"
        );
    }
    assert_eq!(third.why, NoBaseline::NoSuchId);
}

#[test]
fn an_unborn_head_and_a_missing_base_are_said() {
    let world = World::new();
    let mut shelf = folder_shelf(&world.path("store"));
    shelf.save(&kept("a", 1, None)).unwrap();
    let choice = chosen_by(&asking(MERGE_BASE, &[]), &shelf, &world.work(), &Surroundings::default());
    assert!(matches!(only_why(&choice), NoBaseline::NoHistory(why) if why.contains("nothing is committed")));
    world.commit("m0");
    let choice = chosen_by(&asking(MERGE_BASE, &[]), &shelf, &world.work(), &onto("gone"));
    assert!(matches!(only_why(&choice), NoBaseline::NoForkPoint(why) if why.contains("`gone`")));
}

#[test]
fn the_first_run_has_none_whatever_is_asked_for() {
    let (world, _) = World::with_main(1);
    let shelf = folder_shelf(&world.path("store"));
    for from in [MERGE_BASE, BaselineFrom::Branch("main".to_owned()), BaselineFrom::Last(1)] {
        let choice = chosen_by(&asking(from, &[]), &shelf, &world.work(), &onto("main"));
        assert_eq!(only_why(&choice), &NoBaseline::NoneSaved);
    }
    let choice = chosen_by(&asking(BaselineFrom::Pin("a".to_owned()), &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(only_why(&choice), &NoBaseline::NoSuchId);
    let choice =
        chosen_by(&asking(BaselineFrom::File("none.json".to_owned()), &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(only_why(&choice), &NoBaseline::NoSuchFile);
}

#[test]
fn a_file_that_is_not_there_is_named_and_the_next_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    shelf.save(&kept("a", 1, None)).unwrap();
    let around = Surroundings::default();
    let first = chosen_by(&asking(file("typo.json"), &[BaselineFrom::Last(1)]), &shelf, folder.path(), &around);
    let missing = PassedOver { from: file("typo.json"), why: NoBaseline::NoSuchFile };
    assert_eq!(
        (ids(&first), &first.prior.chosen.as_ref().unwrap().passed_over),
        (vec![("a", None)], &vec![missing.clone()])
    );
    let last = chosen_by(&asking(pin("zz"), &[file("typo.json")]), &shelf, folder.path(), &around);
    let chosen = last.prior.chosen.unwrap();
    assert_eq!((chosen.passed_over.len(), &chosen.passed_over[1], chosen.by), (2, &missing, None));
}

#[test]
fn runs_of_changed_files_are_why_there_is_none_in_a_history() {
    let (world, main) = World::with_main(2);
    let mut shelf = folder_shelf(&world.path("store"));
    let dirty = |commit: &str| Some(Commit { dirty: true, ..noted(commit, &[]) });
    shelf.save(&kept("nowhere", 1, None)).unwrap();
    let choice = || chosen_by(&asking(MERGE_BASE, &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(only_why(&choice()), &NoBaseline::NotInHistory { saved: 1, shallow: false }, "of no commit");
    let mut shelf = folder_shelf(&world.path("store"));
    shelf.save(&kept("other", 2, dirty(&"f".repeat(40)))).unwrap();
    let choice = || chosen_by(&asking(MERGE_BASE, &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(only_why(&choice()), &NoBaseline::NotInHistory { saved: 2, shallow: false }, "of another history");
    let mut shelf = folder_shelf(&world.path("store"));
    shelf.save(&kept("d0", 3, dirty(&main[0]))).unwrap();
    shelf.save(&kept("d1", 4, dirty(&main[1]))).unwrap();
    let choice = || chosen_by(&asking(MERGE_BASE, &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(only_why(&choice()), &NoBaseline::Dirty { saved: 2 });
    let mut shelf = folder_shelf(&world.path("store"));
    shelf.save(&kept("clean", 5, Some(noted(&main[0], &[])))).unwrap();
    let choice = chosen_by(&asking(MERGE_BASE, &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(ids(&choice), [("clean", Some(1))]);
}

#[test]
fn baselines_of_too_few_requests_are_passed_over_and_named() {
    let (world, main) = World::with_main(2);
    let work = world.work();
    let mut shelf = folder_shelf(&work);
    let few = kept_few("few", 9, Some(noted(&main[1], &main[..1])), 19);
    shelf.save(&few).unwrap();
    fs::write(work.join("few.json"), serde_json::to_string(&few).unwrap()).unwrap();
    shelf.save(&kept_few("fewer", 8, Some(noted(&main[1], &main[..1])), 3)).unwrap();
    let of = |from| chosen_by(&asking(from, &[]), &folder_shelf(&work), &work, &onto("main"));
    for from in [MERGE_BASE, BaselineFrom::Last(5), pin("few"), file("few.json")] {
        assert_eq!(only_why(&of(from)), &NoBaseline::TooFewOk { ok: 19, needed: 20 });
    }
    shelf.save(&kept_few("enough", 1, Some(noted(&main[0], &[])), 20)).unwrap();
    assert_eq!(ids(&of(MERGE_BASE)), [("enough", Some(1))]);
    let choice = of(BaselineFrom::Last(5));
    assert_eq!((ids(&choice), choice.prior.history.len()), (vec![("enough", None)], 1));
    let refused: Vec<String> = choice.refused.iter().map(ToString::to_string).collect();
    assert!(refused[0].ends_with("/few.json`: 19 of its requests were ok, and 20 are needed to compare with"));
    assert_eq!(refused.len(), 2);
}

#[test]
fn a_pin_is_the_beginning_of_one_id() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    for (minute, id) in ["01a2-b", "01a3-c", "01a3-d", "01a3"].into_iter().enumerate() {
        shelf.save(&kept(id, minute as u32, None)).unwrap();
    }
    let of = |id: &str| chosen_in(folder.path(), pin(id), None);
    for (beginning, id) in [("01a2", "01a2-b"), ("01a2-b", "01a2-b"), ("01a3-c", "01a3-c"), ("01a3", "01a3")] {
        assert_eq!(ids(&of(beginning)), [(id, None)], "{beginning}");
    }
    assert_eq!(only_why(&of("1a2")), &NoBaseline::NoSuchId);
    let spec = asking(pin("01a"), &[]);
    let error = try_chosen(&spec, &shelf, folder.path(), &Surroundings::default(), None).unwrap_err().to_string();
    assert!(error.contains("`pin:01a`") && error.contains("4 begin so") && error.contains("01a3-d"), "{error}");
}

#[test]
fn another_key_is_no_baseline_and_what_differs_is_named() {
    let (world, main) = World::with_main(2);
    let mut shelf = folder_shelf(&world.path("store"));
    let commit = || Some(noted(&main[1], &main[..1]));
    let mut older = spec();
    older.load.warmup = 1;
    shelf.save(&keep(&run_of(&older, "older", &at(1), commit()))).unwrap();
    let mut newer = spec();
    newer.load.warmup = 9;
    newer.baseline.class = Some("a10g".to_owned());
    let newest = keep(&run_of(&newer, "newer", &at(2), commit()));
    shelf.save(&newest).unwrap();
    fs::write(world.work().join("file.json"), serde_json::to_string(&newest).unwrap()).unwrap();
    let differs = |what: &str, baseline: &str, run: &str| Difference {
        what: what.to_owned(),
        baseline: baseline.to_owned(),
        run: run.to_owned(),
    };
    let from_newest = vec![differs("baseline.class", "\"a10g\"", ""), differs("load.warmup", "9", "5")];
    for from in [
        MERGE_BASE,
        BaselineFrom::Branch("main".to_owned()),
        BaselineFrom::Last(3),
        BaselineFrom::Pin("newer".to_owned()),
        BaselineFrom::File("file.json".to_owned()),
    ] {
        let choice = chosen_by(&asking(from, &[]), &shelf, &world.work(), &onto("main"));
        assert_eq!(only_why(&choice), &NoBaseline::Differs(from_newest.clone()));
    }
    let mut long = asking(BaselineFrom::Last(1), &[]);
    long.prompts.system = Some("é".repeat(500));
    let ask = Ask {
        spec: &long,
        key: &gate_baseline::key(&long, gate_model::DEFINITIONS),
        surroundings: &onto("main"),
        folder: &world.work(),
        run_id: None,
    };
    let choice = choose(&ask, &shelf, Repository::of(&world.work()).as_ref()).unwrap();
    let NoBaseline::Differs(differences) = only_why(&choice) else { panic!("{choice:?}") };
    let [.., system] = &differences[..] else { panic!("{differences:?}") };
    assert_eq!((system.what.as_str(), system.baseline.as_str()), ("prompts.system", ""));
    assert!(system.run.starts_with("\"sha256:") && system.run.len() == 73, "{}", system.run);
    let choice = chosen_by(&asking(BaselineFrom::Pin("older".to_owned()), &[]), &shelf, &world.work(), &onto("main"));
    assert_eq!(only_why(&choice), &NoBaseline::Differs(vec![differs("load.warmup", "1", "5")]));
}

#[test]
fn tokens_must_agree_where_they_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    shelf.save(&kept("a", 1, None)).unwrap();
    let mut run = run_of(&spec(), "now", &at(9), None);
    run.samples.iter_mut().for_each(|sample| sample.usage = None);
    let spec = asking(BaselineFrom::Last(1), &[]);
    let (known, unknown) = (with_tokens(the_key(), &run), the_key());
    let with = |key: &BaselineKey| {
        let ask = Ask { spec: &spec, key, surroundings: &Surroundings::default(), folder: folder.path(), run_id: None };
        choose(&ask, &shelf, Repository::of(folder.path()).as_ref()).unwrap()
    };
    assert_eq!(ids(&with(&unknown)), [("a", None)]);
    let choice = with(&known);
    let NoBaseline::Differs(differences) = only_why(&choice) else { panic!("{choice:?}") };
    assert_eq!((differences.len(), differences[0].what.as_str()), (1, "tokens"));
}

#[test]
fn a_pin_or_a_file_is_the_one_that_is_named() {
    let (world, main) = World::with_main(2);
    let work = world.work();
    let mut shelf = folder_shelf(&world.path("store"));
    keep_each(&mut shelf, "m", &main);
    let noise = Noise { runs: 3, found: at(1), tau: [("ttft.p50".to_owned(), 0.04)].into() };
    shelf.save_noise("chat", &the_key(), &noise).unwrap();
    let choice = chosen_by(&asking(BaselineFrom::Pin("m0".to_owned()), &[]), &shelf, &work, &onto("main"));
    assert_eq!((ids(&choice), choice.prior.noise.clone()), (vec![("m0", None)], Some(noise)));
    assert_eq!(choice.prior.history.len(), 2);

    fs::create_dir(work.join("kept")).unwrap();
    fs::write(work.join("kept/x.json"), serde_json::to_string(&kept("x", 1, None)).unwrap()).unwrap();
    let file = asking(BaselineFrom::File("kept/x.json".to_owned()), &[]);
    let choice = chosen_by(&file, &shelf, &work, &onto("main"));
    assert_eq!(ids(&choice), [("x", None)]);
    fs::write(work.join("kept/x.json"), "{").unwrap();
    let ask = Ask { spec: &file, key: &the_key(), surroundings: &onto("main"), folder: &work, run_id: None };
    let error = choose(&ask, &shelf, Repository::of(&work).as_ref()).unwrap_err().to_string();
    assert!(error.contains("kept/x.json") && error.contains("corrupt"), "{error}");
}

#[test]
fn a_run_that_was_saved_is_not_its_own_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    shelf.save(&kept("a", 1, None)).unwrap();
    shelf.save(&kept("b", 2, None)).unwrap();
    let spec = asking(BaselineFrom::Last(5), &[]);
    let (key, around) = (the_key(), Surroundings::default());
    let ask = Ask { spec: &spec, key: &key, surroundings: &around, folder: folder.path(), run_id: Some("b") };
    let choice = choose(&ask, &shelf, Repository::of(folder.path()).as_ref()).unwrap();
    assert_eq!(ids(&choice), [("a", None)]);
    assert_eq!(choice.prior.history.len(), 1);
    let alone = tempfile::tempdir().unwrap();
    folder_shelf(alone.path()).save(&kept("b", 2, None)).unwrap();
    fs::write(alone.path().join("b.json"), serde_json::to_string(&kept("b", 2, None)).unwrap()).unwrap();
    for from in [BaselineFrom::Last(5), pin("b"), file("b.json")] {
        assert_eq!(only_why(&chosen_in(alone.path(), from, Some("b"))), &NoBaseline::Itself);
    }
}

#[test]
fn corrupt_files_are_named_and_the_next_ones_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    (1..4).for_each(|minute| shelf.save(&kept(&format!("a{minute}"), minute, None)).unwrap());
    let keys = folder.path().join(".gate/baselines/chat").join(&the_key().hash[..12]);
    fs::write(keys.join("a3.json"), "{").unwrap();
    // Whole as JSON, but its samples cannot be: that only shows when it is loaded.
    let mut odd = kept("a2", 2, None);
    odd.run.samples[0].first_token = Some(gate_model::Nanos(-1));
    fs::write(keys.join("a2.json"), serde_json::to_string(&odd).unwrap()).unwrap();
    fs::write(keys.join("noise.json"), "?").unwrap();
    let choice = chosen_by(&asking(BaselineFrom::Last(1), &[]), &shelf, folder.path(), &Surroundings::default());
    assert_eq!(ids(&choice), [("a1", None)]);
    let mut refused: Vec<_> = choice.refused.iter().map(|refused| refused.file.rsplit('/').next().unwrap()).collect();
    refused.sort_unstable();
    assert_eq!(refused, ["a2.json", "a3.json", "noise.json"], "each once");
    fs::write(keys.join("a1.json"), serde_json::to_string(&odd).unwrap().replace("\"a2\"", "\"a1\"")).unwrap();
    fs::write(folder.path().join(".gate/baselines/chat/notes.md"), "no baseline, and none that was saved").unwrap();
    for (from, files) in [(BaselineFrom::Last(1), 3), (pin("a3"), 1)] {
        let choice = chosen_by(&asking(from, &[]), &shelf, folder.path(), &Surroundings::default());
        assert_eq!(only_why(&choice), &NoBaseline::AllRefused { files });
        assert_eq!(choice.refused.len(), 5, "what calibration found and the notes too");
    }
    fs::remove_dir_all(&keys).unwrap();
    let choice = chosen_by(&asking(BaselineFrom::Last(1), &[]), &shelf, folder.path(), &Surroundings::default());
    assert_eq!((only_why(&choice), choice.refused.len()), (&NoBaseline::NoneSaved, 1));
}

#[test]
fn no_more_are_loaded_than_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    (0..30).for_each(|minute| shelf.save(&kept(&format!("a{minute:02}"), minute, None)).unwrap());
    let choice = chosen_by(&asking(BaselineFrom::Last(3), &[]), &shelf, folder.path(), &Surroundings::default());
    assert_eq!(ids(&choice), [("a29", None), ("a28", None), ("a27", None)]);
    assert_eq!((choice.prior.history.len(), choice.prior.history[19].id()), (20, "a10"));
}
