//! Telling the forge what a job found: the runner's own files, the comment, the check run. What a forge refuses costs a
//! line, never a verdict.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gate_forge::{
    CheckText, Comment, CommentPolicy, Conclusion, Courier, Delivered, Delivery, Event, Forge, ForgeError, Job,
    Variables,
};
use gate_model::{ExitCode, Secret, Status, Verdict};
use gate_report::{About, CommentTemplate, Source};

use crate::console::Console;
use crate::failure::Failure;
use crate::stop::Interrupts;
use crate::{reports, surroundings};

/// The longest that all calls to a forge take at the end of a job.
const PATIENCE: Duration = Duration::from_secs(90);

/// The longest that they take in a job that was stopped: a runner kills it soon after.
const FAREWELL: Duration = Duration::from_secs(5);

/// The variables that hold a forge's tokens.
const TOKENS: [&str; 4] = ["GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN"];

/// The most lines of a failure that are shown outside the log.
const MOST_LINES: usize = 30;

/// Whether it is the command's own purpose to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zeal {
    /// Where the job can.
    WherePossible,
    /// Or say why not.
    Insist,
}

/// What there is to tell at the end of a command.
pub(crate) struct Told<'a> {
    pub(crate) verdicts: &'a [Verdict],
    /// How the process ends.
    pub(crate) exit: ExitCode,
    /// Why there is no verdict, or not all of them.
    pub(crate) failure: Option<&'a Failure>,
    /// Whether all that could not be measured is so for want of credentials.
    pub(crate) no_credentials: bool,
    /// The folder of the reports, where they were just written.
    pub(crate) out: Option<&'a Path>,
    /// Files that the job's later steps may want: the name of an output, and its paths.
    pub(crate) files: Vec<(&'static str, Vec<PathBuf>)>,
}

impl Told<'_> {
    /// Whether nothing was measured for want of credentials, and that costs nothing.
    fn is_unmeasured(&self) -> bool {
        self.no_credentials && self.exit == ExitCode::Passed
    }

    /// Whether every gate was measured and passed.
    fn is_green(&self) -> bool {
        let is_green = |verdict: &Verdict| matches!(verdict.status, Status::Passed | Status::PassedWithWarnings);
        self.failure.is_none() && self.verdicts.iter().all(is_green)
    }
}

/// Tells the forge.
pub(crate) struct Publisher<'a> {
    console: &'a Console,
    interrupts: Interrupts,
    variables: Variables,
    job: Option<Job>,
    courier: Option<Courier>,
    policy: CommentPolicy,
    source: Source,
    template: Option<CommentTemplate>,
}

impl<'a> Publisher<'a> {
    /// Finds the job and its token; nothing is sent.
    ///
    /// # Errors
    /// That the job's variables make no sense; where it insists also that there is no job or no token.
    pub(crate) fn new(
        zeal: Zeal,
        policy: CommentPolicy,
        interrupts: &Interrupts,
        console: &'a Console,
    ) -> Result<Self, Failure> {
        let variables = surroundings::variables();
        let tokens = TOKENS.iter().filter_map(|name| variables.get(*name));
        console.secrets.add(&tokens.map(Secret::new).collect::<Vec<_>>());
        let job = surroundings::job(&variables, console)?;
        if zeal == Zeal::Insist && job.is_none() {
            return Err(Failure::usage("cannot publish: this is no job of GitHub Actions or GitLab CI")
                .hint("gate publishes where GITHUB_ACTIONS or GITLAB_CI is `true`, with the variables these set"));
        }
        let mut publisher = Self {
            console,
            interrupts: interrupts.clone(),
            courier: None,
            source: Source::Own,
            template: None,
            variables,
            job,
            policy,
        };
        match publisher.engage() {
            Ok(()) => Ok(publisher),
            Err(error) if zeal == Zeal::Insist => Err(refused(&error)),
            Err(error) => {
                publisher.explain_silence(&error);
                Ok(publisher)
            }
        }
    }

    /// The job, where there is one.
    pub(crate) fn job(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// Comments are worded by this template.
    pub(crate) fn word_by(&mut self, template: CommentTemplate) {
        self.template = Some(template);
    }

    fn engage(&mut self) -> Result<(), ForgeError> {
        let Some(job) = &self.job else { return Ok(()) };
        let token = gate_forge::token_of(job, &self.variables)?;
        let interrupts = self.interrupts.clone();
        let mut courier = Courier::new(job.clone(), token, PATIENCE, move || interrupts.is_over())?;
        if let Some(name) = self.check_name() {
            courier.name_check(&name);
        }
        self.courier = Some(courier);
        Ok(())
    }

    /// Why a pull or merge request gets no comment.
    fn explain_silence(&self, error: &ForgeError) {
        if self.policy != CommentPolicy::Never && self.job.as_ref().is_some_and(|job| job.request.is_some()) {
            self.console.warning(&refused(error));
        }
    }

    /// Opens the check run of these gates. A token that may not is the job's own choice.
    pub(crate) fn open(&mut self, gates: &[&str]) {
        let Some(name) = self.check_name() else { return };
        let Some(courier) = &mut self.courier else { return };
        let text = CheckText {
            title: "measuring".to_owned(),
            summary: format!("Measuring {}.", gate_report::escape::markdown(&gates.join(", "))),
        };
        if let Err(error) = courier.open_check(&name, &text) {
            tracing::info!("no check run: failed to {}", gate_report::escape::terminal(&error.to_string()));
        }
    }

    /// The check run's name: the same at every run, so that it can be required.
    fn check_name(&self) -> Option<String> {
        let job = self.job.as_ref().filter(|job| job.forge == Forge::GitHub)?;
        Some(format!("gate: {}", job.key))
    }

    /// Tells everything, and gives what could not be delivered.
    pub(crate) fn end(&mut self, told: &Told<'_>) -> Vec<ForgeError> {
        // Whoever stops a job does not wait long.
        self.interrupts.bear((told.exit == ExitCode::Interrupted).then_some(FAREWELL));
        let is_runner = self.job.as_ref().is_some_and(|job| job.forge == Forge::GitHub);
        if is_runner {
            self.annotate(told);
            self.summarise(told);
        }
        if let Some((job, out)) = self.job.as_ref().filter(|job| job.forge == Forge::GitLab).zip(told.out)
            && let Err(failure) = reports::write_for_gitlab(told.verdicts, job.page.as_deref(), out, self.console)
        {
            self.console.warning(&failure);
        }
        let delivered = self.deliver(told);
        if let Some(page) = &delivered.comment {
            self.console.people(&format!("Comment: {}\n", gate_report::escape::terminal(page)));
        }
        if let Some(why) = &delivered.left {
            self.console.people(&format!("No comment: {}\n", gate_report::escape::terminal(why)));
        }
        if is_runner {
            self.put_out(told, delivered.comment.as_deref());
        }
        delivered.failed
    }

    /// Says what was not delivered, in one line.
    pub(crate) fn warn(&self, failed: &[ForgeError]) {
        let [first, others @ ..] = failed else { return };
        let words = refused(first).message;
        let others = others.iter().map(|error| gate_report::escape::terminal(&format!("; to {error}")));
        let message = format!("{words}{} (the verdict stands)", others.collect::<String>());
        let hint = failed.iter().find_map(ForgeError::hint);
        self.console.warning(&Failure { message, hint: hint.map(str::to_owned), ..refused(first) });
    }

    fn deliver(&mut self, told: &Told<'_>) -> Delivered {
        // A stopped job says nothing new of the change; a newer one is often why it was stopped.
        let comment = if told.exit == ExitCode::Interrupted { None } else { self.comment(told) };
        // Whoever reads the check run must be able to trust it, and a stranger's numbers cannot be.
        let check = self.check_text(told).filter(|_| self.source == Source::Own);
        let Some(courier) = &mut self.courier else { return Delivered::default() };
        courier.deliver(&Delivery { comment, check: check.map(|text| (conclusion(told), text)) })
    }

    fn comment(&self, told: &Told<'_>) -> Option<Comment> {
        let job = self.job.as_ref().filter(|_| self.policy != CommentPolicy::Never)?;
        // Where a job's reports can be fetched from; of those made elsewhere nothing is linked.
        let artifact = job.page.as_ref().filter(|_| self.source == Source::Own).map(|page| match job.forge {
            Forge::GitHub => format!("{page}#artifacts"),
            Forge::GitLab => format!("{page}/artifacts/browse"),
        });
        let advice: Vec<String> = told.failure.iter().flat_map(|failure| failure.sentences()).collect();
        let about = About {
            job: Some(&job.key),
            run: job.run,
            commit: job.head.as_deref(),
            page: job.page.as_deref(),
            artifact: artifact.as_deref(),
            source: self.source,
            unjudged: told.failure.map(|_| told.exit),
            advice: &advice,
        };
        let built_in = || gate_report::comment(told.verdicts, &about);
        let body = match &self.template {
            // The verdict is told all the same.
            Some(template) => gate_report::comment_by(template, told.verdicts, &about).or_else(|error| {
                self.internal(&error);
                built_in()
            }),
            None => built_in(),
        };
        let body = body.map_err(|error| self.internal(&error)).ok()?;
        Some(Comment {
            marker: gate_report::comment_marker(Some(&job.key)),
            state: gate_report::comment_state(told.verdicts, job.run),
            body: self.console.secrets.redact(&body),
            passed: told.exit == ExitCode::Passed && told.is_green(),
            policy: self.policy,
        })
    }

    fn check_text(&self, told: &Told<'_>) -> Option<CheckText> {
        let (title, summary) = match (told.failure, told.verdicts) {
            (Some(failure), []) => (failure.message.clone(), listed(failure)),
            (_, verdicts) => {
                let summary = gate_report::check_summary(verdicts).map_err(|error| self.internal(&error)).ok()?;
                (gate_report::check_title(verdicts), summary)
            }
        };
        let clean = |text: &str| self.console.secrets.redact(text);
        Some(CheckText { title: clean(&gate_report::escape::terminal(&title)), summary: clean(&summary) })
    }

    /// Annotations on the specs' lines: the runner reads them from the log.
    fn annotate(&self, told: &Told<'_>) {
        let mut lines = match self.source {
            Source::Own => gate_report::annotations(told.verdicts),
            Source::Elsewhere => String::new(),
        };
        if let Some(failure) = told.failure {
            lines += &gate_report::diagnostic_annotations(&failure.diagnostics);
            let word = if told.exit == ExitCode::Passed { "warning" } else { "error" };
            let sentence = gate_report::escape::terminal(&failure.sentence());
            lines += &format!("::{word} title=gate::{}\n", gate_report::escape::workflow_message(&sentence));
        }
        self.console.urgent(&lines);
    }

    fn summarise(&self, told: &Told<'_>) {
        let Some(path) = self.runner_file("GITHUB_STEP_SUMMARY") else { return };
        let mut text = match (told.failure, told.verdicts) {
            (Some(failure), _) => format!("{}\n\n{}\n", gate_report::unjudged_heading(told.exit), listed(failure)),
            (None, _) => String::new(),
        };
        if !told.verdicts.is_empty() {
            match gate_report::summary(told.verdicts) {
                Ok(summary) => text += &summary,
                Err(error) => self.internal(&error),
            }
        }
        let there = std::fs::metadata(&path).map_or(0, |file| file.len());
        if let Some(text) = gate_forge::fitting_summary(there, &self.console.secrets.redact(&text)) {
            self.append(&path, &text);
        }
    }

    /// What later steps may ask of this one.
    fn put_out(&self, told: &Told<'_>, comment: Option<&str>) {
        let Some(path) = self.runner_file("GITHUB_OUTPUT") else { return };
        let unique = uuid::Uuid::now_v7().simple().to_string();
        let mut outputs = vec![
            ("verdict", word(if told.is_unmeasured() { ExitCode::CouldNotMeasure } else { told.exit }).to_owned()),
            ("exit-code", told.exit.code().to_string()),
            ("no-credentials", told.no_credentials.to_string()),
            ("comment", comment.unwrap_or_default().to_owned()),
        ];
        for (name, paths) in &told.files {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            outputs.push((name, paths.join("\n")));
        }
        let entries = outputs
            .iter()
            .map(|(name, value)| gate_forge::output_entry(name, &self.console.secrets.redact(value), &unique));
        self.append(&path, &entries.collect::<String>());
    }

    fn runner_file(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    fn append(&self, path: &Path, text: &str) {
        // A pipe that nobody reads would keep the job for ever.
        if std::fs::metadata(path).is_ok_and(|file| !file.is_file()) {
            return self.console.warning(&Failure::unwritable(path, "it is no file"));
        }
        let open = std::fs::OpenOptions::new().create(true).append(true).open(path);
        if let Err(error) = open.and_then(|mut file| file.write_all(text.as_bytes())) {
            self.console.warning(&Failure::unwritable(path, error));
        }
    }

    fn internal(&self, error: &gate_report::ReportError) {
        self.console.warning(&Failure::internal(format!("failed to {error}")));
    }
}

/// Publishes verdicts that were made elsewhere; what could not be delivered is the command's failure.
impl Publisher<'_> {
    /// Notes where the verdicts come from: another run's, or this workflow's own shards.
    pub(crate) fn of_verdicts(mut self) -> Self {
        let is_foreign = self.job.as_ref().is_some_and(|job| job.event == Event::WorkflowRun || job.from_fork);
        if is_foreign {
            self.source = Source::Elsewhere;
        }
        self
    }
}

/// What a forge refused, for a person.
pub(crate) fn refused(error: &ForgeError) -> Failure {
    let words = gate_report::escape::terminal(&format!("failed to {error}"));
    Failure {
        exit: ExitCode::CouldNotMeasure,
        message: words,
        hint: error.hint().map(str::to_owned),
        diagnostics: Vec::new(),
    }
}

/// A failure as a list in Markdown.
fn listed(failure: &Failure) -> String {
    let lines =
        failure.sentences().into_iter().map(|sentence| format!("- {}\n", gate_report::escape::markdown(&sentence)));
    lines.take(MOST_LINES).collect()
}

/// Red where the build is; neutral where nothing could be said, or it was only reported.
fn conclusion(told: &Told<'_>) -> Conclusion {
    match told.exit {
        ExitCode::Interrupted => Conclusion::Cancelled,
        ExitCode::Passed if told.is_green() => Conclusion::Success,
        ExitCode::Passed => Conclusion::Neutral,
        _ => Conclusion::Failure,
    }
}

/// An exit code by its name.
fn word(exit: ExitCode) -> &'static str {
    match exit {
        ExitCode::Passed => "passed",
        ExitCode::Violated => "violated",
        ExitCode::Usage => "usage",
        ExitCode::CouldNotMeasure => "could-not-measure",
        ExitCode::Inconclusive => "inconclusive",
        ExitCode::Internal => "internal",
        ExitCode::Interrupted => "interrupted",
    }
}
