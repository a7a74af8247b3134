//! Events → tree, under limits.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Parser, ScalarStyle, Span as Stretch};

use super::remedy;
use super::tree::{Content, Entry, Key, Node, Scalar, Site, Span, Style};
use crate::credential::{Secrecy, key_span, looks_secret, shown_key, spans};
use crate::problem::Problem;

/// The longest text that is read, in bytes; what aliases copy is held to it too.
pub(crate) const TEXT_LIMIT: usize = 1 << 20;
/// The deepest nesting of lists and maps.
const DEPTH_LIMIT: usize = 64;
/// The most nodes, keys and copies by aliases included.
const NODE_LIMIT: usize = 20_000;

/// What reading a text gave.
pub(crate) struct Parsed {
    /// The tree, where there is one.
    pub(crate) root: Option<Node>,
    /// All that is wrong with the text as YAML.
    pub(crate) problems: Vec<Problem>,
    /// Credentials in values that did not get into the tree.
    pub(crate) masks: Vec<Span>,
}

/// Reads one YAML document; `flag` is the overlay the text comes from, if it is not the file.
pub(crate) fn read(text: &str, flag: Option<usize>) -> Parsed {
    let mut reader = Reader { flag, ..Reader::default() };
    if let Err(fatal) = reader.run(text) {
        reader.problems.push(fatal);
        reader.root = None;
    }
    Parsed { root: reader.root, problems: reader.problems, masks: reader.masks }
}

#[derive(Default)]
struct Reader {
    flag: Option<usize>,
    frames: Vec<Frame>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    bytes: usize,
    documents: usize,
    root: Option<Node>,
    problems: Vec<Problem>,
    masks: Vec<Span>,
}

/// A list or map that is not closed yet.
struct Frame {
    site: Site,
    anchor: usize,
    part: Part,
}

enum Part {
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<Entry>,
        seen: BTreeMap<String, Site>,
        pending: Pending,
    },
    /// `{{ … }}`, which YAML reads as a map with a map for its key.
    Template(String),
}

/// The key whose value comes next.
enum Pending {
    Nothing,
    Key(Key),
    /// A key that was reported: its value is dropped, and may be a credential.
    Dropped(Secrecy),
}

impl Reader {
    fn run(&mut self, text: &str) -> Result<(), Problem> {
        let mut parser = Parser::new_from_str(text);
        while let Some(event) = parser.next_event() {
            let (event, stretch) = event.map_err(|error| remedy::explain(&error, text, self.flag))?;
            let site = self.site(stretch);
            match event {
                Event::DocumentStart(_) => {
                    self.documents += 1;
                    if self.documents > 1 {
                        return Err(Problem::error(site, "a second YAML document starts here")
                            .hint("one file is one gate: remove the `---`, or put the rest into a file of its own"));
                    }
                }
                Event::Alias(anchor) => self.alias(anchor, site)?,
                Event::Scalar(text, style, anchor, tag) => {
                    if tag.is_some() {
                        self.refuse_tag(site);
                    }
                    let style = match style {
                        ScalarStyle::Plain => Style::Plain,
                        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => Style::Quoted,
                        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                    };
                    let scalar = Scalar { text: text.into_owned(), style };
                    self.charge((1, scalar.text.len()), site)?;
                    self.add(Node { site, content: Content::Scalar(scalar) }, anchor)?;
                }
                Event::SequenceStart(anchor, tag) => {
                    self.open(Part::Sequence(Vec::new()), site, anchor, tag.is_some())?;
                }
                Event::MappingStart(anchor, tag) => {
                    let (entries, seen, pending) = (Vec::new(), BTreeMap::new(), Pending::Nothing);
                    self.open(Part::Mapping { entries, seen, pending }, site, anchor, tag.is_some())?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.close(site)?,
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
            }
        }
        Ok(())
    }

    fn site(&self, stretch: Stretch) -> Site {
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        match self.flag {
            Some(flag) => Site::Flag(flag),
            None => Site::Text(Span {
                line: short(stretch.start.line()),
                column: short(stretch.start.col() + 1),
                end_line: short(stretch.end.line()),
                end_column: short(stretch.end.col() + 1),
            }),
        }
    }

    fn open(&mut self, part: Part, site: Site, anchor: usize, tagged: bool) -> Result<(), Problem> {
        if tagged {
            self.refuse_tag(site);
        }
        if self.frames.len() >= DEPTH_LIMIT {
            return Err(too_deep(site));
        }
        self.charge((1, 0), site)?;
        self.frames.push(Frame { site, anchor, part });
        Ok(())
    }

    fn close(&mut self, end: Site) -> Result<(), Problem> {
        let Some(Frame { site, anchor, part }) = self.frames.pop() else { return Ok(()) };
        let content = match part {
            Part::Sequence(items) => Content::Sequence(items),
            Part::Mapping { entries, .. } => Content::Mapping(entries),
            Part::Template(text) => Content::Scalar(Scalar { text, style: Style::Plain }),
        };
        let site = match (site, end, &content) {
            (Site::Text(start), Site::Text(end), Content::Scalar(_)) => {
                Site::Text(Span { end_line: end.end_line, end_column: end.end_column, ..start })
            }
            _ => site,
        };
        self.add(Node { site, content }, anchor)
    }

    fn alias(&mut self, anchor: usize, site: Site) -> Result<(), Problem> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(Problem::error(site, "this `*` refers to the value it stands in")
                .hint("write the value itself; if the `*` belongs to a text, put the text in quotes"));
        };
        if self.frames.len() + node.height() > DEPTH_LIMIT {
            return Err(too_deep(site));
        }
        self.charge(node.weight(), site)?;
        self.add(node, 0)
    }

    /// Counts what a node costs; aliases and anchors count as the copies they are.
    fn charge(&mut self, (nodes, bytes): (usize, usize), site: Site) -> Result<(), Problem> {
        self.nodes += nodes;
        self.bytes += bytes;
        if self.nodes > NODE_LIMIT {
            return Err(Problem::error(site, format!("the spec has more than {NODE_LIMIT} values"))
                .hint("a gate spec is a page or two; split it, or drop the aliases that multiply it"));
        }
        if self.bytes > 2 * TEXT_LIMIT {
            return Err(Problem::error(site, "the aliases of this spec copy too much text")
                .hint("write the values themselves instead of `*` aliases"));
        }
        Ok(())
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Problem> {
        let Some(Frame { part, .. }) = self.frames.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        let part_is_key = matches!(part, Part::Mapping { pending: Pending::Nothing, .. });
        if anchor > 0 && !part_is_key {
            let (nodes, bytes) = node.weight();
            self.anchors.insert(anchor, node.clone());
            self.charge((nodes, bytes), node.site)?;
        }
        let below_secret = self.frames.iter().any(|frame| match &frame.part {
            Part::Mapping { pending: Pending::Key(key), .. } => looks_secret(&key.text),
            _ => false,
        });
        let Some(Frame { part, site, .. }) = self.frames.last_mut() else { return Ok(()) };
        if let (Part::Mapping { entries, pending: Pending::Nothing, .. }, Some(text)) = (&*part, template(*site, &node))
            && entries.is_empty()
        {
            *part = Part::Template(text);
            return Ok(());
        }
        match part {
            Part::Sequence(items) => items.push(node),
            Part::Template(_) => self.masks.extend(spans(&node, Secrecy::Secret)),
            Part::Mapping { entries, seen, pending } => match std::mem::replace(pending, Pending::Nothing) {
                Pending::Key(key) => {
                    entries.push(Entry { key: Key { anchored: anchor > 0, ..key }, value: node });
                }
                Pending::Dropped(secrecy) => self.masks.extend(spans(&node, secrecy)),
                Pending::Nothing => match as_key(&node, anchor, seen) {
                    Ok(key) => *pending = Pending::Key(key),
                    Err(problem) => {
                        let secret = |name: &str| below_secret || looks_secret(name);
                        let secrecy = match &node.content {
                            Content::Scalar(key) if !secret(&key.text) => Secrecy::ByName,
                            _ => Secrecy::Secret,
                        };
                        match &node.content {
                            Content::Scalar(key) => self.masks.extend(key_span(&key.text, node.site, secrecy)),
                            _ => self.masks.extend(spans(&node, secrecy)),
                        }
                        *pending = Pending::Dropped(secrecy);
                        self.problems.push(problem);
                    }
                },
            },
        }
        Ok(())
    }

    fn refuse_tag(&mut self, site: Site) {
        self.problems.push(
            Problem::error(site, "YAML tags such as `!!str` are not used here")
                .hint("remove it: the key decides the type; if the `!` belongs to a text, put the text in quotes"),
        );
    }
}

/// The text of a `{{ … }}` whose first brace is at a site, and whose second one opens a node.
fn template(outer: Site, node: &Node) -> Option<String> {
    let Content::Mapping(entries) = &node.content else { return None };
    let [Entry { key, value }] = entries.as_slice() else { return None };
    let adjacent = match (outer, node.site) {
        (Site::Text(outer), Site::Text(inner)) => outer.part(1, 0).column == inner.column && outer.line == inner.line,
        _ => true,
    };
    (adjacent && value.is_null()).then(|| format!("{{{{ {} }}}}", key.text))
}

fn as_key(node: &Node, anchor: usize, seen: &mut BTreeMap<String, Site>) -> Result<Key, Problem> {
    let site = node.site;
    let Content::Scalar(Scalar { text, .. }) = &node.content else {
        return Err(Problem::error(site, "a list or map stands where a key is expected")
            .hint("if this is a text with `{` or `[` at its start, put it in quotes"));
    };
    if anchor > 0 {
        return Err(Problem::error(site, "an anchor (`&`) stands on a key")
            .hint("put it after the colon, on the value, or write the value twice"));
    }
    if text == "<<" {
        return Err(Problem::error(site, "`<<` merges are not applied").hint("write the keys out here"));
    }
    if let Some(first) = seen.get(text) {
        let first = match first {
            Site::Text(span) => format!(": it is already on line {}", span.line),
            Site::Flag(_) | Site::Whole => String::new(),
        };
        return Err(
            Problem::error(site, format!("duplicate key `{}`{first}", shown_key(text))).hint("keep one of the two")
        );
    }
    seen.insert(text.clone(), site);
    Ok(Key { text: text.clone(), site, anchored: false })
}

fn too_deep(site: Site) -> Problem {
    Problem::error(site, format!("lists and maps are nested more than {DEPTH_LIMIT} deep"))
        .hint("close the `{` and `[` that are left open")
}
