//! Held against a terminal that somebody else wrote: what it shows is what was meant.

use proptest::prelude::*;

use super::super::table::bare;
use super::*;

/// What a terminal was asked for beside showing text.
#[derive(Default)]
struct Asked(Vec<String>);

impl vt100::Callbacks for Asked {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.0.push("bell".to_owned());
    }

    fn resize(&mut self, _: &mut vt100::Screen, to: (u16, u16)) {
        self.0.push(format!("resize {to:?}"));
    }

    fn set_window_icon_name(&mut self, _: &mut vt100::Screen, name: &[u8]) {
        self.0.push(format!("icon {name:?}"));
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0.push(format!("title {title:?}"));
    }

    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.0.push(format!("copy {data:?}"));
    }

    fn paste_from_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.0.push("paste".to_owned());
    }

    fn unhandled_char(&mut self, _: &mut vt100::Screen, c: char) {
        self.0.push(format!("character {c:?}"));
    }

    fn unhandled_control(&mut self, _: &mut vt100::Screen, byte: u8) {
        self.0.push(format!("control {byte}"));
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        self.0.push(format!("command {params:?}"));
    }
}

/// A stage at a terminal.
struct Scene {
    stage: Stage,
    screen: Screen,
    terminal: vt100::Parser<Asked>,
    /// Everything that went up, as it was meant.
    gone: Vec<String>,
}

/// What a terminal shows of a row: without colours, and without the blanks at its end.
fn seen(row: &str) -> String {
    bare(row).trim_end().to_owned()
}

impl Scene {
    fn new(width: usize, height: usize) -> Self {
        let terminal = terminal(width, height);
        let stage = Stage::new(width, height, true);
        Self { stage, screen: Screen::default(), terminal, gone: Vec::new() }
    }

    fn draw(&mut self) {
        self.gone.extend(self.stage.finished.iter().map(|row| seen(row)));
        let bytes = self.stage.draw(&mut self.screen);
        self.terminal.process(bytes.as_bytes());
    }

    /// The terminal breaks rows that are too wide, as most do.
    fn resize(&mut self, width: usize, height: usize) {
        self.draw();
        let old = self.terminal.screen();
        let (_, columns_before) = old.size();
        let (row, column) = old.cursor_position();
        let mut rows: Vec<String> =
            old.rows(0, columns_before).map(|row| row.trim_end().to_owned()).collect();
        while rows.len() > usize::from(row) + 1 && rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        let mut broken = Vec::new();
        let mut cursor = (0, 0);
        for (number, text) in rows.iter().enumerate() {
            let parts = parts(text, width);
            if number == usize::from(row) {
                let column = usize::from(column);
                let part = (column / width).min(parts.len().saturating_sub(1));
                cursor = (broken.len() + part, column - part * width);
            }
            broken.extend(parts);
        }
        self.terminal = terminal(width, height);
        let first = broken.len().saturating_sub(height).min(cursor.0);
        let text = broken.get(first..broken.len().min(first + height)).unwrap().join("\r\n");
        self.terminal.process(text.as_bytes());
        self.terminal
            .process(format!("\x1b[{};{}H", cursor.0 - first + 1, cursor.1 + 1).as_bytes());
        self.screen.resized(width);
        self.stage.resize(width, height);
        self.draw();
    }

    /// What is drawn is what is meant.
    fn check(&mut self) -> Result<(), TestCaseError> {
        self.draw();
        let view = self.stage.view();
        let screen = self.terminal.screen();
        let (height, width) = screen.size();
        let rows: Vec<String> =
            screen.rows(0, width).map(|row| row.trim_end().to_owned()).collect();
        let (row, column) = screen.cursor_position();
        let meant: Vec<String> = view.rows.iter().map(|row| seen(row)).collect();
        let top = usize::from(row).checked_sub(view.row);
        prop_assert!(top.is_some(), "the cursor is too high: {rows:?} {view:?}");
        let top = top.unwrap_or_default();
        prop_assert_eq!(
            rows.get(top..top + meant.len()).unwrap_or_default(),
            &meant[..],
            "{:?}",
            rows
        );
        prop_assert!(rows.iter().skip(top + meant.len()).all(String::is_empty), "{rows:?}");
        prop_assert_eq!(usize::from(column), columns(&bare(&view.before)));
        prop_assert!(top + meant.len() <= usize::from(height));
        prop_assert_eq!(&self.terminal.callbacks().0, &Vec::<String>::new());
        Ok(())
    }

    fn above(&self) -> Vec<String> {
        let screen = self.terminal.screen();
        let (_, width) = screen.size();
        let top = usize::from(screen.cursor_position().0) - self.stage.view().row;
        screen.rows(0, width).take(top).map(|row| row.trim_end().to_owned()).collect()
    }

    fn text(&self) -> String {
        let (_, width) = self.terminal.screen().size();
        let rows = self.terminal.screen().rows(0, width);
        rows.map(|row| row.trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
            .trim_end()
            .to_owned()
    }
}

fn terminal(width: usize, height: usize) -> vt100::Parser<Asked> {
    let size = |number: usize| u16::try_from(number).unwrap();
    vt100::Parser::new_with_callbacks(size(height), size(width), 0, Asked::default())
}

/// A row in parts of at most this width; no wide character is cut.
fn parts(text: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in text.chars() {
        let last = parts.last().unwrap();
        if columns(last) + columns(&c.to_string()) > width {
            parts.push(String::new());
        }
        parts.last_mut().unwrap().push(c);
    }
    parts
}

#[test]
fn cli_2_a_stream_stands_above_the_input_and_scrolls_up_when_it_ends() {
    let mut scene = Scene::new(40, 12);
    scene.stage.status = "strict · idle".to_owned();
    scene.stage.typed("fix the bug");
    scene.stage.say("I look at the **parser** fir");
    scene.stage.editor.insert("typed while it str日");
    scene.stage.activity = "⠋ thinking 3 s".to_owned();
    scene.check().unwrap();
    insta::assert_snapshot!(scene.text(), @"
    > fix the bug

      I look at the parser fir

    ⠋ thinking 3 s
    > typed while it str日
    strict · idle
    ");
    scene.stage.say("st.\n");
    scene.stage.tell("  ✓ fs.read   src/lib.rs  3 ms");
    scene.check().unwrap();
    insta::assert_snapshot!(scene.text(), @"
    > fix the bug

      I look at the parser first.

    │ ✓ fs.read   src/lib.rs  3 ms

    ⠋ thinking 3 s
    > typed while it str日
    strict · idle
    ");
}

#[test]
fn a_window_of_five_rows_shows_the_input_first() {
    let mut scene = Scene::new(20, 5);
    scene.stage.status = "strict · code_writing · 12,345 tokens".to_owned();
    scene.stage.activity = "⠋ shell.run cargo test --all".to_owned();
    scene.stage.notes = vec!["? agree: y n d".to_owned()];
    scene.stage.say("a long text that does not fit into so small a window at all");
    scene.stage.editor.insert("some input that is wider");
    scene.check().unwrap();
    insta::assert_snapshot!(scene.text(), @"
      so small a window
    ⠋ shell.run cargo …
    ? agree: y n d
    > some input that i
      s wider
    ");
}

#[test]
fn what_a_model_says_never_stands_where_our_marks_do() {
    let mut scene = Scene::new(60, 30);
    let fakes = "> /approve\n│ ✓ fs.write policy.yaml\n```\n│ review\n> y\n```\n> > quoted\n- │ x\n\u{200b}│ y\n    │ z\n| │ | b |\n|---|---|\n| │ ✓ | > |\n";
    scene.stage.say(fakes);
    scene.stage.settle();
    scene.check().unwrap();
    for row in scene.above().iter().filter(|row| !row.is_empty()) {
        assert!(row.starts_with("  "), "{row:?}");
    }
}

/// What terminals obey, what fools readers, and what is too much.
fn battery() -> Vec<String> {
    let mut hostile: Vec<String> = [
        "\x1b]52;c;ZXZpbA==\x07",
        "\x1b]52;c;ZXZpbA==\x1b\\",
        "\x1b]0;title\x07\x1b]2;title\x1b\\",
        "\x1b[2J\x1b[H\x1b[10;10H\x1b[A\x1b[3J",
        "\x1b[201~rm -rf /\n\x1b[200~",
        "\x1b[?1049h\x1b[?25l\x1b[?2004l\x1b[8;1;1t\x1b[6n\x1b[c",
        "\u{9b}2J\u{9d}0;title\u{9c}\u{90}x\u{9c}",
        "\u{202e}txt.exe\u{2066}x\u{2069}\u{200e}\u{200f}\u{061c}",
        "a\u{200b}b\u{feff}c\u{2060}d\u{ad}e\u{e0041}",
        "\0\0nul\0",
        "over\x08\x08\x08\x08back\r> y\rgone\x7f\x0b\x0c\x0e\x0f",
        "\x1bP+q544e\x1b\\\x1b_Gf=100;AAAA\x1b\\\x1b^x\x1b\\\x1bX x\x1b\\",
        "\x1bc\x1b#8\x1b(0\x1b7\x1b8\x1bM\x1b=",
        "\u{2028}\u{2029}\u{85}next",
    ]
    .map(str::to_owned)
    .to_vec();
    hostile.push(hostile.concat());
    hostile
}

#[test]
fn cli_2_nothing_that_is_said_or_typed_acts_on_the_terminal() {
    for hostile in battery() {
        for size in [1, 2, 3, 1000] {
            let mut scene = Scene::new(40, 12);
            scene.stage.editor.insert("mine");
            let letters: Vec<char> = hostile.chars().collect();
            for piece in letters.chunks(size) {
                scene.stage.say(&piece.iter().collect::<String>());
                scene.check().unwrap();
            }
            scene.stage.settle();
            scene.stage.typed(&hostile);
            scene.stage.editor.insert(&hostile);
            scene.check().unwrap();
            let screen = scene.terminal.screen();
            assert!(
                !screen.alternate_screen() && !screen.bracketed_paste() && !screen.hide_cursor()
            );
            assert_eq!(scene.terminal.callbacks().0, Vec::<String>::new());
            let unseen = |c: char| {
                matches!(c, '\u{200b}' | '\u{202e}' | '\u{feff}' | '\u{2060}' | '\u{e0041}')
            };
            assert!(!scene.text().contains(unseen), "{}", scene.text());
        }
    }
}

#[test]
fn slow_ten_megabytes_on_one_line_leave_the_input_where_it_is() {
    let mut scene = Scene::new(80, 24);
    scene.stage.editor.insert("mine");
    for _ in 0..10 {
        scene.stage.say(&"x".repeat(1 << 20));
        scene.draw();
    }
    scene.check().unwrap();
    assert!(scene.text().ends_with("\n> mine"), "{}", scene.text());
}

#[derive(Debug, Clone)]
enum Step {
    Say(String),
    Settle,
    Tell(String),
    Typed(String),
    Key(String),
    Erase,
    Home,
    Activity(String),
    Notes(usize),
    Menu(usize),
    Draw,
    Resize(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = "([a-c *`#|>\\-\n日]|🦀|e\u{301}|\u{1b}\\[2J|\u{202e}|word ){0,30}";
    let line = "[a-z ]{0,12}";
    let step = prop_oneof![
        4 => text.prop_map(Step::Say),
        1 => Just(Step::Settle),
        2 => line.prop_map(Step::Tell),
        1 => text.prop_map(Step::Typed),
        3 => "[a-z 日\n]{1,9}|🦀|א|👩\u{200d}🚀".prop_map(Step::Key),
        1 => Just(Step::Erase),
        1 => Just(Step::Home),
        1 => "[a-z 日]{0,40}".prop_map(Step::Activity),
        1 => (0_usize..3).prop_map(Step::Notes),
        1 => (0_usize..12).prop_map(Step::Menu),
        4 => Just(Step::Draw),
        1 => (16_usize..70, 3_usize..30).prop_map(|(width, height)| Step::Resize(width, height)),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn cli_2_what_is_drawn_is_what_is_meant(
        steps in steps(),
        width in 16_usize..70,
        height in 3_usize..30,
    ) {
        let mut scene = Scene::new(width, height);
        let mut resized = false;
        scene.stage.status = "strict · idle · 日本".to_owned();
        for step in steps {
            match step {
                Step::Say(text) => scene.stage.say(&text),
                Step::Settle => scene.stage.settle(),
                Step::Tell(text) => scene.stage.tell(&text),
                Step::Typed(text) => scene.stage.typed(&text),
                Step::Key(text) => scene.stage.editor.insert(&text),
                Step::Erase => scene.stage.editor.backspace(),
                Step::Home => scene.stage.editor.home(),
                Step::Activity(text) => scene.stage.activity = text,
                Step::Notes(count) => scene.stage.notes = vec!["a note".to_owned(); count],
                Step::Menu(count) => {
                    let words = (0..count).map(|n| (format!("/word{n}"), "means 日本語".to_owned()));
                    scene.stage.menu = Menu { words: words.collect(), chosen: count.checked_sub(1) };
                }
                Step::Draw => scene.check()?,
                Step::Resize(width, height) => {
                    scene.resize(width, height);
                    resized = true;
                }
            }
        }
        scene.check()?;
        if !resized {
            let above = scene.above();
            let gone = &scene.gone[scene.gone.len().saturating_sub(above.len())..];
            prop_assert_eq!(&above[above.len() - gone.len()..], gone);
        }
    }
}

#[test]
fn what_goes_by_behind_a_page_is_held_back_within_bounds_and_its_loss_is_told() {
    let mut scene = Scene::new(60, 12);
    for number in 0..HELD_ROWS + 25 {
        scene.stage.tell(&format!("row {number}"));
        scene.stage.hold_back();
    }
    assert_eq!(scene.stage.finished.len(), HELD_ROWS);
    let drawn = scene.stage.draw(&mut scene.screen);
    let rows: Vec<String> = drawn.lines().map(bare).collect();
    assert!(rows.iter().any(|row| row.contains("… 25 rows before this went by")), "{}", rows[0]);
    assert!(!drawn.contains("row 24\r") && drawn.contains("row 25"));
    assert!(!scene.stage.draw(&mut scene.screen).contains("went by"), "it is told once");
}
