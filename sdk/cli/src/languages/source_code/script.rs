//! Regular expressions and templates, of which only a source in JavaScript or TypeScript has some.

use super::{Text, is_part_of_word};

/// The words after which a value begins, as opposed to those that are one.
const BEFORE_VALUES: [&str; 15] = [
    "await",
    "case",
    "default",
    "delete",
    "do",
    "else",
    "in",
    "instanceof",
    "new",
    "of",
    "return",
    "throw",
    "typeof",
    "void",
    "yield",
];
/// The words before a condition in parentheses, after which a statement begins.
const BEFORE_CONDITIONS: [&str; 4] = ["for", "if", "while", "with"];

/// An open bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Brace,
    Parenthesis {
        has_condition: bool,
    },
    /// The `${` of a template.
    Value,
}

/// What the part of a script that has been read says about the next character: `/` begins a regular expression or divides
/// a value, and `}` ends a block or continues a template.
pub(super) struct Script<'a> {
    /// The last word or sign.
    last: &'a str,
    /// Whether it is the end of a value.
    is_value: bool,
    is_after_blank: bool,
    brackets: Vec<Bracket>,
    /// The longest rest of the source in which a regular expression may begin. After one that does not end there is none in
    /// its line: it was a division, and a line with many of them would take time out of proportion to its length.
    longest_rest: usize,
}

impl Default for Script<'_> {
    fn default() -> Self {
        Self {
            last: "",
            is_value: false,
            is_after_blank: false,
            brackets: Vec::new(),
            longest_rest: usize::MAX,
        }
    }
}

impl<'a> Script<'a> {
    /// Returns the regular expression or the piece of a template at the beginning of the rest of the source, whose first
    /// character is `first`.
    pub(super) fn text_at(&mut self, rest: &str, first: char) -> Option<Text> {
        match first {
            '`' => Some(piece_of_template(rest)),
            '}' if self.brackets.last() == Some(&Bracket::Value) => Some(piece_of_template(rest)),
            '/' if !self.is_value && rest.len() <= self.longest_rest => {
                let found = regular_expression(rest);
                if found.is_none() {
                    self.longest_rest = rest.find('\n').map_or(0, |end| rest.len() - end);
                }
                found
            }
            _ => None,
        }
    }

    /// Adds a text that has been read.
    pub(super) fn add_text(&mut self, text: &'a str) {
        if text.starts_with('}') {
            self.brackets.pop();
        }
        let is_open = text.starts_with(['`', '}']) && text.ends_with("${");
        if is_open {
            self.brackets.push(Bracket::Value);
        }
        self.add_token(text, !is_open);
    }

    /// Adds a word or another character that has been read.
    pub(super) fn add(&mut self, token: &'a str) {
        if token.trim().is_empty() {
            self.is_after_blank = true;
            return;
        }
        let is_value = match token {
            "(" => {
                let has_condition = !self.is_value && BEFORE_CONDITIONS.contains(&self.last);
                self.brackets.push(Bracket::Parenthesis { has_condition });
                false
            }
            ")" => self.closes_value(),
            "{" => {
                self.brackets.push(Bracket::Brace);
                false
            }
            "}" => {
                // A parenthesis without its end is a mistake, which esbuild reports.
                while let Some(Bracket::Parenthesis { .. }) = self.brackets.pop() {}
                false
            }
            "]" => true,
            // `a.b`, `1.5` and `[.../a/]`.
            "." => self.is_value,
            // `a++ / b`.
            "+" | "-" => self.last == token,
            // `a! / b` in TypeScript.
            "!" => self.is_value && !self.is_after_blank,
            word => word.starts_with(is_part_of_word) && self.is_value_of(word),
        };
        self.add_token(token, is_value);
    }

    /// Closes a parenthesis. Returns whether it was that of a value.
    fn closes_value(&mut self) -> bool {
        let Some(Bracket::Parenthesis { has_condition }) = self.brackets.last().copied() else {
            return true;
        };
        self.brackets.pop();
        !has_condition
    }

    /// Returns whether a word is a value: a keyword may be the name of a member.
    fn is_value_of(&self, word: &str) -> bool {
        let mut keywords = BEFORE_VALUES.iter().chain(&BEFORE_CONDITIONS);
        self.last == "." || !keywords.any(|keyword| *keyword == word)
    }

    fn add_token(&mut self, token: &'a str, is_value: bool) {
        self.last = token;
        self.is_value = is_value;
        self.is_after_blank = false;
    }
}

/// Returns the piece of a template that the first character of a source begins, up to a value in it or to its end.
fn piece_of_template(source: &str) -> Text {
    let mut chars = source.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '`' => return Text::new(1..at, 1),
            '$' if source[at..].starts_with("${") => return Text::new(1..at, 2),
            '\\' => {
                chars.next();
            }
            _ => {}
        }
    }
    Text::new(1..source.len(), 0)
}

/// Returns the regular expression that the slash at the beginning of a source begins, without the letters behind it. A `/`
/// without another one in the same line begins none.
fn regular_expression(source: &str) -> Option<Text> {
    let mut is_in_class = false;
    let mut is_escaped = false;
    for (at, char) in source.char_indices().skip(1) {
        match char {
            '\n' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '/' if !is_in_class => return Some(Text::new(1..at, 1)),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::languages::source_code::{Syntax, without_comments, without_texts};

    #[test]
    fn a_regular_expression_is_a_text_and_a_division_is_not() {
        // What remains without texts shows which of the two a source is taken for.
        for (text, expected) in [
            (r"path.replace(/\/*$/, 1) // a", "path.replace(//, 1) "),
            ("/['\"]/;\n// a", "//;\n"),
            ("a = /[/*]/g; // b", "a = //g; "),
            (r"a = /[\]/*]/ // b", "a = // "),
            (r"a = /\\/ // b", "a = // "),
            ("/`/.test(a) // b", "//.test(a) "),
            ("[/\"/, /'/] // b", "[//, //] "),
            ("{ a: /\"/ } // b", "{ a: // } "),
            ("a => /\"/ // b", "a => // "),
            ("return /\"/ // b", "return // "),
            ("f()\n{ } /\"/.test(b) // c", "f()\n{ } //.test(b) "),
            (
                "typeof /\"/; export default /\"/ // b",
                "typeof //; export default // ",
            ),
            ("if (a(b)) /\"/.test(c) // d", "if (a(b)) //.test(c) "),
            ("[.../\"/.exec(a)] // b", "[...//.exec(a)] "),
            (
                "!/\"/.test(a) && /\"/.test(b) // c",
                "!//.test(a) && //.test(b) ",
            ),
            ("a = b\n!/\"/.test(c) // d", "a = b\n!//.test(c) "),
            ("a /* b */ = /* c */ /\"/ // d", "a   =   // "),
            // Each of these divides: what is between two slashes is not a text.
            ("a / b / c // d", "a / b / c "),
            ("a\n/ b / c // d", "a\n/ b / c "),
            ("(a) / b / (c[0] / d) // e", "(a) / b / (c[0] / d) "),
            ("a++ / b / c-- / d // e", "a++ / b / c-- / d "),
            ("a! / b / 1.5 / 2. / c // d", "a! / b / 1.5 / 2. / c "),
            ("a.return / b / c // d", "a.return / b / c "),
            ("a.if(b) / c / d // e", "a.if(b) / c / d "),
            ("\"a\" / b / `c` / d // e", "\"\" / b / `` / d "),
            ("/a/ / b / c // d", "// / b / c "),
            ("/a/g / b / c // d", "//g / b / c "),
            ("$ / b / _ / é / c // d", "$ / b / _ / é / c "),
            // It does not end in its line.
            ("a = / b\n/* c */ d", "a = / b\n  d"),
            ("a = /[/\n/* b */ c", "a = /[/\n  c"),
            ("a = /\\\n/* b */ c", "a = /\\\n  c"),
            ("a = /", "a = /"),
        ] {
            assert_eq!(without_texts(text, Syntax::JavaScript), expected, "{text}");
        }
    }

    #[test]
    fn the_values_in_a_template_are_code() {
        for (text, whole, bare) in [
            ("`a${b}c` // d", "`a${b}c` ", "`  b ` "),
            ("`${a}${b}` // c", "`${a}${b}` ", "`  a   b ` "),
            ("`${f(\"}\")}\"` // c", "`${f(\"}\")}\"` ", "`  f(\"\") ` "),
            ("`${`${a}`}'` // b", "`${`${a}`}'` ", "`  `  a ` ` "),
            (
                "`${{ a: { b } }.a}'` // c",
                "`${{ a: { b } }.a}'` ",
                "`  { a: { b } }.a ` ",
            ),
            ("`${a /* } */}'` // b", "`${a  }'` ", "`  a   ` "),
            (
                "`${/}`/.test(a)}'` // b",
                "`${/}`/.test(a)}'` ",
                "`  //.test(a) ` ",
            ),
            ("`\\${a}\\`'` // b", "`\\${a}\\`'` ", "`` "),
            ("`$a{b}$`; c // d", "`$a{b}$`; c ", "``; c "),
            ("`${a}` / b / c // d", "`${a}` / b / c ", "`  a ` / b / c "),
            ("`a${b\n}c\nd` e // f", "`a${b\n}c\nd` e ", "`  b\n \n` e "),
            ("`${(}'` // a", "`${(}'` // a", "`  (}'"),
            ("`${", "`${", "`  "),
            ("`${a}", "`${a}", "`  a "),
            ("}`a", "}`a", "}`"),
            (")}]", ")}]", ")}]"),
        ] {
            assert_eq!(without_comments(text, Syntax::JavaScript), whole, "{text}");
            assert_eq!(without_texts(text, Syntax::JavaScript), bare, "{text}");
        }
    }
}
