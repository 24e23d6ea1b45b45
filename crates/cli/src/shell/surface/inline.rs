//! What stands inside a line of Markdown: emphasis, code, links.

use crate::inert::inert;

use super::style::{Span, Style};

/// How far back an opening mark may wait for its end before it is taken for what it is.
const PATIENCE: usize = 300;

/// A line, in spans.
#[derive(Debug)]
pub(crate) struct Inline {
    pub(crate) spans: Vec<Span>,
    /// Up to here nothing changes when more of the line comes.
    pub(crate) settled: usize,
}

/// What a line says. `base` is the style around it.
pub(crate) fn inline(text: &str, base: Style) -> Inline {
    let mut reader = Reader { text, spans: Vec::new(), plain: String::new(), unsettled: None };
    reader.read(0, text.len(), base);
    let settled = reader.unsettled.unwrap_or(text.len());
    Inline { spans: reader.spans, settled }
}

struct Reader<'a> {
    text: &'a str,
    spans: Vec<Span>,
    plain: String,
    /// The first mark that may still find its end.
    unsettled: Option<usize>,
}

impl Reader<'_> {
    fn read(&mut self, from: usize, to: usize, style: Style) {
        let mut at = from;
        while at < to {
            let Some(rest) = self.text.get(at..to) else { break };
            let taken = match rest.as_bytes().first() {
                Some(b'\\') => self.escaped(rest),
                Some(b'`') => self.code(at, rest, style),
                Some(b'*' | b'_') => self.emphasis(at, to, rest, style),
                Some(b'~') if rest.starts_with("~~") => {
                    self.marked(at, to, Mark { text: "~~", style: style.struck() }, style)
                }
                Some(b'[') => self.link(at, at + 1, rest, style),
                Some(b'!') if rest.starts_with("![") => self.link(at, at + 2, rest, style),
                _ => None,
            };
            at += taken.unwrap_or_else(|| {
                let next = rest.chars().next().map_or(1, char::len_utf8);
                // Up to the next character that could mean something.
                let more = rest.get(next..).unwrap_or_default();
                let plain =
                    next + more.find(['\\', '`', '*', '_', '~', '[', '!']).unwrap_or(more.len());
                self.plain.push_str(rest.get(..plain).unwrap_or_default());
                plain
            });
            if taken.is_none() {
                self.flush(style, at);
            }
        }
        self.flush(style, to);
    }

    fn flush(&mut self, style: Style, end: usize) {
        if !self.plain.is_empty() {
            let text = inert(&std::mem::take(&mut self.plain)).into_owned();
            self.spans.push(Span { text, style, end });
        }
    }

    /// A mark that has no end yet.
    fn open(&mut self, at: usize) {
        if self.text.len() - at <= PATIENCE {
            self.unsettled.get_or_insert(at);
        }
    }

    fn escaped(&mut self, rest: &str) -> Option<usize> {
        let next = rest.get(1..)?.chars().next()?;
        if !next.is_ascii_punctuation() {
            return None;
        }
        self.plain.push(next);
        Some(2)
    }

    fn code(&mut self, at: usize, rest: &str, style: Style) -> Option<usize> {
        let ticks = rest.bytes().take_while(|byte| *byte == b'`').count();
        let mut from = ticks;
        while let Some(found) = rest.get(from..)?.find('`') {
            let start = from + found;
            let run = rest.get(start..)?.bytes().take_while(|byte| *byte == b'`').count();
            if run == ticks {
                let code = rest.get(ticks..start)?;
                let inner = code.strip_prefix(' ').and_then(|it| it.strip_suffix(' '));
                let code = inner.filter(|it| !it.trim().is_empty()).unwrap_or(code);
                self.flush(style, at);
                let text = inert(code).into_owned();
                self.spans.push(Span { text, style: Style::CODE, end: at + start + run });
                return Some(start + run);
            }
            from = start + run;
        }
        self.open(at);
        self.plain.push_str(rest.get(..ticks)?);
        Some(ticks)
    }

    fn emphasis(&mut self, at: usize, to: usize, rest: &str, style: Style) -> Option<usize> {
        let marks: [(&'static str, Style); 6] = [
            ("***", style.bold().italic()),
            ("**", style.bold()),
            ("*", style.italic()),
            ("___", style.bold().italic()),
            ("__", style.bold()),
            ("_", style.italic()),
        ];
        let (text, style_in) = marks.into_iter().find(|(mark, _)| rest.starts_with(mark))?;
        self.marked(at, to, Mark { text, style: style_in }, style)
    }

    fn marked(&mut self, at: usize, to: usize, mark: Mark, style: Style) -> Option<usize> {
        let length = mark.text.len();
        let inside = at + length;
        let before = self.text.get(..at)?.chars().next_back();
        let after = self.text.get(inside..to)?.chars().next();
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let by_line = mark.text.starts_with('_');
        let opens = match after {
            // More may come.
            None => true,
            Some(c) => !c.is_whitespace(),
        } && !(by_line && is_word(before));
        if !opens {
            self.plain.push_str(mark.text);
            return Some(length);
        }
        let Some(end) = self.end_of(inside, to, mark.text) else {
            self.open(at);
            self.plain.push_str(mark.text);
            return Some(length);
        };
        self.flush(style, at);
        self.read(inside, end, mark.style);
        if let Some(last) = self.spans.last_mut() {
            last.end = last.end.max(end + length);
        }
        Some(end + length - at)
    }

    /// Where a mark that opened before `from` is closed.
    fn end_of(&self, from: usize, to: usize, mark: &str) -> Option<usize> {
        let rest = self.text.get(from..to)?;
        let letter = mark.chars().next()?;
        let mut at = 0;
        while let Some(found) = rest.get(at..)?.find(mark) {
            let start = at + found;
            let run = rest.get(start..)?.chars().take_while(|c| *c == letter).count();
            let before = rest.get(..start)?.chars().next_back();
            let after = rest.get(start + run..)?.chars().next();
            let closes = start > 0
                && before.is_some_and(|c| !c.is_whitespace() && c != '\\')
                && !(letter == '_' && after.is_some_and(char::is_alphanumeric));
            if closes && run == mark.len() {
                return Some(from + start);
            }
            if closes && run > mark.len() {
                return Some(from + start + run - mark.len());
            }
            at = start + run;
        }
        None
    }

    /// A link or an image as its text with the address behind it: nothing leads elsewhere than it says.
    fn link(&mut self, at: usize, inside: usize, rest: &str, style: Style) -> Option<usize> {
        let skipped = inside - at;
        let Some(close) = rest.find("](") else {
            if !rest.contains(']') || rest.ends_with(']') {
                self.open(at);
            }
            return None;
        };
        let label = rest.get(skipped..close)?;
        if label.contains(['[', ']']) {
            return None;
        }
        let Some(length) = rest.get(close + 2..)?.find(')') else {
            self.open(at);
            return None;
        };
        let address = rest.get(close + 2..close + 2 + length)?;
        let end = at + close + 2 + length + 1;
        self.flush(style, at);
        let (shown, link) = (inert(label.trim()), inert(address.trim()));
        if !shown.is_empty() && shown != link {
            let text = shown.into_owned();
            self.spans.push(Span { text, style: style.underlined(), end: at + close });
            let text = format!(" ({link})");
            self.spans.push(Span { text, style: style.quiet(), end });
        } else {
            let text = link.into_owned();
            self.spans.push(Span { text, style: style.underlined(), end });
        }
        Some(end - at)
    }
}

struct Mark {
    text: &'static str,
    style: Style,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The spans, in a form that can be read: `B(bold)`.
    fn told(text: &str) -> String {
        let name = |style: Style| match style {
            Style::PLAIN => "",
            Style::STRONG => "B",
            Style::CODE => "C",
            style if style == Style::PLAIN.italic() => "I",
            style if style == Style::PLAIN.bold().italic() => "BI",
            style if style == Style::PLAIN.struck() => "S",
            style if style == Style::PLAIN.underlined() => "U",
            style if style == Style::PLAIN.quiet() => "Q",
            _ => "?",
        };
        let spans = inline(text, Style::PLAIN).spans;
        let mut out = String::new();
        for span in spans {
            match name(span.style) {
                "" => out.push_str(&span.text),
                name => out.push_str(&format!("{name}({})", span.text)),
            }
        }
        out
    }

    #[test]
    fn emphasis_code_and_links_are_understood() {
        assert_eq!(told("a **b** c"), "a B(b) c");
        assert_eq!(told("*i* _j_ ***k***"), "I(i) I(j) BI(k)");
        assert_eq!(told("~~gone~~ `x * y` ``a`b``"), "S(gone) C(x * y) C(a`b)");
        assert_eq!(told("see [the page](https://x.y/z)."), "see U(the page)Q( (https://x.y/z)).");
        assert_eq!(told("[https://x.y](https://x.y)"), "U(https://x.y)");
        assert_eq!(told("![alt](a.png)"), "U(alt)Q( (a.png))");
        assert_eq!(told(r"\*not\* a\b"), r"*not* a\b");
    }

    #[test]
    fn what_only_looks_like_a_mark_is_text() {
        assert_eq!(told("2 * 3 * 4 = 24"), "2 * 3 * 4 = 24");
        assert_eq!(told("snake_case_name and __init__"), "snake_case_name and B(init)");
        assert_eq!(told("a `b and **c"), "a `b and **c");
        assert_eq!(told("array[1] and [x]"), "array[1] and [x]");
        assert_eq!(told("日本*語*です"), "日本I(語)です");
    }

    #[test]
    fn what_may_still_change_is_known() {
        assert_eq!(inline("all plain", Style::PLAIN).settled, 9);
        assert_eq!(inline("a **bold not", Style::PLAIN).settled, 2);
        assert_eq!(inline("a `code", Style::PLAIN).settled, 2);
        assert_eq!(inline("a [link](htt", Style::PLAIN).settled, 2);
        assert_eq!(inline("a **b** c", Style::PLAIN).settled, 9);
        let long = format!("a * b {}", "x".repeat(400));
        assert_eq!(inline(&long, Style::PLAIN).settled, long.len());
    }

    #[test]
    fn every_span_is_inert() {
        let hostile = "a\u{1b}[2J **b\u{9b}2J** `c\u{7}` [d\u{1b}](e\u{1b}]0;x\u{7})";
        for span in inline(hostile, Style::PLAIN).spans {
            assert!(!span.text.contains(|c: char| c.is_control()), "{span:?}");
        }
    }
}
