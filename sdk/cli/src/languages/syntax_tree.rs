//! The syntax trees of a plugin's sources. The build checks a source before the tools of its language run, and finds by
//! queries of tree-sitter what it checks. So a word in a comment or a string means nothing.

use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tree_sitter::{
    Language, Node, ParseOptions, Parser, Query, QueryCursor, QueryCursorOptions,
    StreamingIterator as _, Tree,
};

/// How long reading a source, or a search in it, may take. The build does not rely on what it finds in one that takes
/// longer, such as a generated file with a mistake at its beginning.
const PATIENCE: Duration = Duration::from_secs(2);

/// The grammar of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grammar {
    C,
    Go,
    JavaScript,
    Python,
    Rust,
    TypeScript,
}

impl Grammar {
    fn language(self) -> Language {
        match self {
            Self::C => tree_sitter_c::LANGUAGE.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
        }
    }
}

/// A source and its tree.
pub(super) struct SyntaxTree {
    pub(super) file: PathBuf,
    text: String,
    pub(super) grammar: Grammar,
    /// `None` if the source could not be read in time.
    tree: Option<Tree>,
    /// Whether a search was given up.
    has_lost_matches: Cell<bool>,
}

impl SyntaxTree {
    /// Reads a file. One that cannot be read is like an empty one: the language's own tools say what is wrong with it.
    pub(super) fn read(file: &Path, grammar: Grammar) -> Self {
        Self::read_within(file, grammar, PATIENCE)
    }

    /// Reads several files.
    pub(super) fn read_all(files: &[PathBuf], grammar: Grammar) -> Vec<Self> {
        let trees = files.iter().map(|file| Self::read(file, grammar));
        trees.collect()
    }

    fn read_within(file: &Path, grammar: Grammar, patience: Duration) -> Self {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let mut parser = Parser::new();
        let tree = match parser.set_language(&grammar.language()) {
            Ok(()) => parse_within(patience, &mut parser, text.as_bytes()),
            Err(_) => None,
        };
        Self {
            file: file.to_owned(),
            text,
            grammar,
            tree,
            has_lost_matches: Cell::new(false),
        }
    }

    /// Whether reading the source, or a search in it, was given up because it took too long.
    pub(super) fn is_incomplete(&self) -> bool {
        self.tree.is_none() || self.has_lost_matches.get()
    }

    /// Whether a part of the source does not follow the grammar, or the source is incomplete, so that what is found in it may
    /// not be all.
    pub(super) fn has_errors(&self) -> bool {
        let mut root = self.tree.iter().map(Tree::root_node);
        self.is_incomplete() || root.any(|root| root.has_error())
    }

    /// Returns the matches of a query in the order of the source, each with the nodes that these names of the query capture.
    ///
    /// # Panics
    /// The query is invalid in the source's grammar. Queries are constants, and tests run each.
    pub(super) fn matches<const N: usize>(
        &self,
        query: &'static str,
        names: [&str; N],
    ) -> Vec<[Option<Capture<'_>>; N]> {
        let Some(tree) = &self.tree else {
            return Vec::new();
        };
        let query = match Query::new(&self.grammar.language(), query) {
            Ok(query) => query,
            Err(error) => panic!("{:?}: {error}", self.grammar),
        };
        let names = names.map(|name| query.capture_index_for_name(name));
        let mut cursor = QueryCursor::new();
        let start = Instant::now();
        let mut go_on = |_: &_| {
            let has_time = start.elapsed() < PATIENCE;
            if !has_time {
                self.has_lost_matches.set(true);
            }
            continue_if(has_time)
        };
        let options = QueryCursorOptions::new().progress_callback(&mut go_on);
        let text = self.text.as_bytes();
        let mut found = cursor.matches_with_options(&query, tree.root_node(), text, options);
        let mut matches = Vec::new();
        while let Some(next) = found.next() {
            matches.push(names.map(|name| {
                let mut captures = next.captures().iter();
                let capture = captures.find(|capture| Some(capture.index) == name)?;
                Some(self.capture(capture.node))
            }));
        }
        matches
    }

    /// Returns the nodes that a query captures, in the order of the source. The query gives one name to all of them.
    pub(super) fn find(&self, query: &'static str) -> impl Iterator<Item = Capture<'_>> {
        self.matches(query, ["found"])
            .into_iter()
            .flatten()
            .flatten()
    }

    /// Returns where the nodes are that a query captures, as [`find`](Self::find) does.
    pub(super) fn ranges(&self, query: &'static str) -> Ranges {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for found in self.find(query) {
            let range = found.node.byte_range();
            if ranges.last().is_none_or(|last| last.end <= range.start) {
                ranges.push(range);
            }
        }
        Ranges(ranges)
    }

    pub(super) fn capture<'tree>(&'tree self, node: Node<'tree>) -> Capture<'tree> {
        Capture {
            node,
            text: &self.text[node.byte_range()],
            line: node.start_position().row + 1,
        }
    }

    /// Returns the words outside of comments, each with its line, counted from 1.
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut leaves = Vec::new();
        if let Some(tree) = &self.tree {
            add_leaves(tree, &mut leaves);
        }
        leaves.into_iter().flat_map(|leaf| {
            let first = leaf.start_position().row + 1;
            let lines = self.text[leaf.byte_range()].lines().enumerate();
            lines.flat_map(move |(index, line)| {
                // The content of a macro in C is one leaf.
                let line = match leaf.kind() {
                    "preproc_arg" => without_line_comment(line),
                    _ => line,
                };
                let words = line.split(|char| !is_part_of_word(char));
                let words = words.filter(|word| !word.is_empty());
                words.map(move |word| (first + index, word))
            })
        })
    }
}

/// A part of a source.
#[derive(Clone, Copy)]
pub(super) struct Capture<'tree> {
    pub(super) node: Node<'tree>,
    pub(super) text: &'tree str,
    /// The line in which it begins, counted from 1.
    pub(super) line: usize,
}

/// Whether a part of a source has this keyword.
pub(super) fn has_keyword(part: Option<Capture<'_>>, keyword: &str) -> bool {
    part.is_some_and(|part| {
        let mut cursor = part.node.walk();
        let mut children = part.node.children(&mut cursor);
        children.any(|child| child.kind() == keyword)
    })
}

/// Parts of a source, in its order, without those that are within others.
pub(super) struct Ranges(Vec<Range<usize>>);

impl Ranges {
    pub(super) fn contain(&self, part: &Capture<'_>) -> bool {
        let start = part.node.start_byte();
        let next = self.0.partition_point(|range| range.end <= start);
        self.0.get(next).is_some_and(|range| range.contains(&start))
    }
}

fn parse_within(patience: Duration, parser: &mut Parser, text: &[u8]) -> Option<Tree> {
    let start = Instant::now();
    let mut go_on = |_: &_| continue_if(start.elapsed() < patience);
    let options = ParseOptions::new().progress_callback(&mut go_on);
    let mut rest = |offset: usize, _| text.get(offset..).unwrap_or_default();
    parser.parse_with_options(&mut rest, None, Some(options))
}

fn continue_if(has_time: bool) -> ControlFlow<()> {
    if has_time {
        ControlFlow::Continue(())
    } else {
        ControlFlow::Break(())
    }
}

/// Adds the nodes without children, except those of comments.
fn add_leaves<'tree>(tree: &'tree Tree, leaves: &mut Vec<Node<'tree>>) {
    let mut cursor = tree.walk();
    loop {
        let is_comment = cursor.node().kind().contains("comment");
        if !is_comment && cursor.goto_first_child() {
            continue;
        }
        if !is_comment {
            leaves.push(cursor.node());
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

/// Returns a line in C up to its comment.
fn without_line_comment(line: &str) -> &str {
    let mut comments = line.match_indices("//").map(|(at, _)| at);
    let is_in_text = |at: &usize| line[..*at].matches('"').count() % 2 == 1;
    let at = comments.find(|at| !is_in_text(at));
    &line[..at.unwrap_or(line.len())]
}

fn is_part_of_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests;
