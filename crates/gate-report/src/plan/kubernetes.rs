//! The plan for several machines of a Kubernetes cluster.

use std::collections::BTreeSet;

use gate_model::{Endpoint, GateSpec, Nanos, Pattern, PromptSpec, REDACTED, Redactor, Target};

use super::PlanView;
use super::section::Section;
use crate::escape;

/// How long pods have to be placed, to pull their image and to wait for `START_AT`.
const PLACING: Nanos = Nanos::from_secs(1_800);

/// How long a section may wait for its target and warm up.
const WARMING: Nanos = Nanos::from_secs(300);

/// How much of a gate's name is in the names of what is made for it; the rest of 63 characters is for what follows it.
const NAMED: usize = 40;

/// A manifest that sends the plan from as many pods as `shards` and then judges all their journals together: a
/// ConfigMap with the spec's text, a volume claim for the journals, an Indexed Job of the shards and a Job that judges.
///
/// A person fills in `START_AT` and `GATE_IMAGE`, as its first lines say. Credentials are never part of it: the pods
/// take the spec's variables from the Secret `gate-secrets`, and one written into the spec itself is left out. No shards
/// are one.
#[must_use]
pub fn kubernetes(view: &PlanView<'_>, shards: u32, spec_file_text: &str) -> String {
    let shards = shards.max(1);
    let name = label(&view.spec.name);
    let redacted = Redactor::new(secrets(view.spec)).redact(spec_file_text).into_owned();
    let is_redacted = redacted.contains(REDACTED) && !spec_file_text.contains(REDACTED);
    let deadline = deadline(view);
    let manifest = Manifest { name: &name, shards, deadline };
    let header = header(view, shards, is_redacted);
    header + &[manifest.spec(&redacted), manifest.journals(), manifest.load(), manifest.judge()].join("---\n")
}

/// The credentials that a resolved spec holds.
fn secrets(spec: &GateSpec) -> Vec<&gate_model::Secret> {
    let mut all = Vec::new();
    for target in std::iter::once(&spec.target).chain(&spec.reference) {
        let Target { key, headers, aws, .. } = target;
        all.extend(key.iter());
        all.extend(headers.iter().map(|header| &header.value));
        if let Some(aws) = aws {
            all.extend([&aws.access_key_id, &aws.secret_access_key]);
            all.extend(aws.session_token.iter());
        }
    }
    all
}

/// What to do with it.
fn header(view: &PlanView<'_>, shards: u32, is_redacted: bool) -> String {
    let name = escape::terminal(&view.spec.name);
    let file = escape::terminal(&view.spec.file);
    let mut lines = vec![
        format!("The gate {name} from {shards} pods, all of which start at one time, judged together."),
        String::new(),
        format!("  export GATE_IMAGE=REGISTRY/gate:TAG START_AT=$(date -u -d '+3 minutes' +%Y-%m-%dT%H:%M:%SZ)"),
        format!("  gate plan --kubernetes {shards} {file} | envsubst '$START_AT $GATE_IMAGE' | kubectl apply -f -"),
        format!("  kubectl logs --follow --pod-running-timeout=30m job/gate-{}-judge", label(&view.spec.name)),
        String::new(),
        "The spec's variables, credentials above all, come from the Secret gate-secrets:".to_owned(),
        "  kubectl create secret generic gate-secrets --from-literal=NAME=VALUE".to_owned(),
        "The journals need a volume that several nodes write to (ReadWriteMany).".to_owned(),
        format!("To run it again: kubectl delete job gate-{0}-load gate-{0}-judge", label(&view.spec.name)),
    ];
    if is_redacted {
        lines.push(format!("A credential in {file} is left out here: write it there as ${{NAME}}."));
    }
    let files = files(view.spec);
    if !files.is_empty() {
        lines.push(
            "These files, which the spec names, have to lie beside it: add them to the ConfigMap's data.".to_owned(),
        );
        lines.extend(files.iter().map(|file| format!("  {}", escape::terminal(file))));
    }
    let comment = |line: String| if line.is_empty() { "#\n".to_owned() } else { format!("# {line}\n") };
    lines.into_iter().map(comment).collect()
}

/// The files beside the spec that it names.
fn files(spec: &GateSpec) -> BTreeSet<&str> {
    let mut files = BTreeSet::new();
    let scenarios = spec.scenarios.iter().map(|scenario| (&scenario.prompts, &scenario.load));
    for (prompts, load) in scenarios.chain([(&spec.prompts, &spec.load)]) {
        let PromptSpec { file, input_empirical, output_empirical, tokenizer, images, .. } = prompts;
        files.extend([file, input_empirical, output_empirical, tokenizer].into_iter().flatten().map(String::as_str));
        let is_file = |image: &&str| !(image.contains("://") || image.starts_with("data:"));
        files.extend(images.iter().map(String::as_str).filter(is_file));
        if let Pattern::Trace(file) = &load.pattern {
            files.insert(file);
        }
    }
    for target in std::iter::once(&spec.target).chain(&spec.reference) {
        files.extend([&target.tls.ca, &target.tls.cert, &target.tls.key].into_iter().flatten().map(String::as_str));
    }
    files
}

/// How long everything may take, in seconds.
fn deadline(view: &PlanView<'_>) -> i64 {
    let section = |section: Section<'_>| {
        let limit = view.spec.run_limit(section.lasts().unwrap_or_else(|| section.plan.duration()));
        limit + WARMING + ready(view.spec)
    };
    let all = view.sections().map(section).fold(PLACING, |sum, one| sum + one);
    all.0 / 1_000_000_000
}

/// How long the targets are waited for.
fn ready(spec: &GateSpec) -> Nanos {
    let waits = std::iter::once(&spec.target).chain(&spec.reference);
    let waits = waits.filter(|target| matches!(target.endpoint, Endpoint::Url(_)));
    waits.fold(Nanos::ZERO, |sum, target| sum + target.ready.within)
}

/// A name that Kubernetes takes: small letters, digits and hyphens.
fn label(name: &str) -> String {
    let plain = |symbol: char| if symbol.is_ascii_alphanumeric() { symbol.to_ascii_lowercase() } else { '-' };
    let label: String = name.chars().map(plain).take(NAMED).collect();
    let label = label.trim_matches('-');
    if label.is_empty() { "gate".to_owned() } else { label.to_owned() }
}

/// What the parts of the manifest have in common.
struct Manifest<'a> {
    name: &'a str,
    shards: u32,
    deadline: i64,
}

impl Manifest<'_> {
    fn metadata(&self, suffix: &str) -> String {
        format!(
            "metadata:\n  name: gate-{}{suffix}\n  labels: {{app.kubernetes.io/name: gate, gate: {0}}}\n",
            self.name
        )
    }

    /// The spec, and when to start.
    fn spec(&self, text: &str) -> String {
        let metadata = self.metadata("");
        format!(
            "apiVersion: v1\nkind: ConfigMap\n{metadata}data:\n  START_AT: \"${{START_AT}}\"\n  gate.yaml: {}",
            block(text)
        )
    }

    /// Where the journals are put together.
    fn journals(&self) -> String {
        let metadata = self.metadata("-journals");
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\n{metadata}spec:\n  accessModes: [ReadWriteMany]\n  resources:\n    \
             requests: {{storage: 10Gi}}\n"
        )
    }

    /// The shards: one fails for itself, since others cannot wait for it.
    fn load(&self) -> String {
        let (metadata, shards, deadline) = (self.metadata("-load"), self.shards, self.deadline);
        let script = format!(
            "shard=$((JOB_COMPLETION_INDEX + 1))
mkdir -p \"/journals/$START_AT\"
code=0
gate run /spec/gate.yaml --shard \"$shard/{shards}\" --start-at \"$START_AT\" \\
  -o \"/journals/$START_AT/run-$shard.jsonl\" || code=$?
touch \"/journals/$START_AT/ended-$shard\"
exit $code
"
        );
        format!(
            "apiVersion: batch/v1
kind: Job
{metadata}spec:
  completionMode: Indexed
  completions: {shards}
  parallelism: {shards}
  backoffLimitPerIndex: 0
  maxFailedIndexes: {shards}
  activeDeadlineSeconds: {deadline}
  template:
    metadata:
      labels: {{app.kubernetes.io/name: gate, gate: {name}}}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{gate: {name}}}
{containers}",
            name = self.name,
            containers = self.pod("load", &script, "requests: {cpu: \"1\", memory: 256Mi}")
        )
    }

    /// The verdict, when all shards have ended.
    fn judge(&self) -> String {
        let (metadata, shards, deadline) = (self.metadata("-judge"), self.shards, self.deadline);
        let script = format!(
            "cd /journals
until [ \"$(ls \"$START_AT\" 2>/dev/null | grep -c '^ended-')\" -ge {shards} ]; do sleep 2; done
gate judge \"$START_AT\"/run-*.jsonl --out \"$START_AT/out\"
"
        );
        format!(
            "apiVersion: batch/v1
kind: Job
{metadata}spec:
  backoffLimit: 0
  activeDeadlineSeconds: {deadline}
  template:
    metadata:
      labels: {{app.kubernetes.io/name: gate}}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
{containers}",
            deadline = deadline + 600,
            containers = self.pod("judge", &script, "requests: {cpu: 100m, memory: 512Mi}")
        )
    }

    /// A pod's one container, with the spec and the journals.
    fn pod(&self, name: &str, script: &str, resources: &str) -> String {
        let script: String = script.lines().map(|line| format!("              {line}\n")).collect();
        format!(
            "      containers:
        - name: {name}
          image: \"${{GATE_IMAGE}}\"
          command: [/bin/sh, -c]
          args:
            - |
{script}          env:
            - name: START_AT
              valueFrom:
                configMapKeyRef: {{name: gate-{gate}, key: START_AT}}
          envFrom:
            - secretRef: {{name: gate-secrets, optional: true}}
          resources:
            {resources}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities: {{drop: [ALL]}}
          volumeMounts:
            - {{name: spec, mountPath: /spec, readOnly: true}}
            - {{name: journals, mountPath: /journals}}
      volumes:
        - name: spec
          configMap: {{name: gate-{gate}}}
        - name: journals
          persistentVolumeClaim: {{claimName: gate-{gate}-journals}}
",
            gate = self.name
        )
    }
}

/// A text as a YAML value: a block where it can be read so and looks as it is, else in quotes with everything unusual
/// escaped.
fn block(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_plain = |symbol: char| {
        symbol == '\n'
            || matches!(symbol, ' '..='~')
            || (symbol >= '\u{a0}' && !"\u{2028}\u{2029}\u{fffe}\u{ffff}".contains(symbol) && !escape::deceives(symbol))
    };
    let starts_plainly = text.starts_with(|first: char| !first.is_whitespace());
    let ends_plainly = text.ends_with('\n') && !text.ends_with("\n\n");
    if !(starts_plainly && ends_plainly && text.chars().all(is_plain)) {
        return format!("{}\n", quoted(text));
    }
    let lines = text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") });
    format!("|\n{}", lines.collect::<String>())
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|symbol| match symbol {
        '"' | '\\' => format!("\\{symbol}"),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        ' '..='~' => symbol.to_string(),
        other => format!("\\U{:08X}", u32::from(other)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_kubernetes_takes() {
        for (name, as_label) in [("chat", "chat"), ("Chat_v1.2", "chat-v1-2"), ("_", "gate"), ("a-", "a")] {
            assert_eq!(label(name), as_label);
        }
        assert_eq!(label(&"x".repeat(64)).len(), NAMED);
    }

    #[test]
    fn any_text_is_a_yaml_value() {
        assert_eq!(block("a: 1\n\nb: é\n"), "|\n    a: 1\n\n    b: é\n");
        assert_eq!(block(" a: 1\n"), "\" a: 1\\n\"\n");
        assert_eq!(block("a: 1"), "\"a: 1\"\n");
        assert_eq!(block("a: \"\t\u{85}\\\"\r\n"), "\"a: \\\"\\t\\U00000085\\\\\\\"\\r\\n\"\n");
    }
}
