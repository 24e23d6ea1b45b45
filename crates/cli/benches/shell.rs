//! What the terminal costs: a token, a key and a page, from their arrival to the bytes that are written; beside a bare write of
//! the same bytes to the same place.
//!
//! `cargo bench --package fluffy-cli --bench shell`

#![expect(
    dead_code,
    unused_imports,
    reason = "the surface is the program's own, and not all of it is measured"
)]
#![expect(clippy::unwrap_used, reason = "a bench that cannot set itself up has nothing to measure")]

#[path = "../src/inert.rs"]
mod inert;
#[path = "../src/shell/surface/mod.rs"]
mod surface;

use std::fs::{File, OpenOptions};
use std::io::Write as _;

use divan::{Bencher, black_box};

use surface::{Page, Pager, Screen, Stage, Style};

const LINE: &str =
    "A line of **Markdown** with `code`, as a model writes it, of the usual length.\n";

fn main() {
    divan::main();
}

/// Where bytes go: a file that takes everything, by one call of the system each.
fn sink() -> File {
    OpenOptions::new().write(true).open("/dev/null").unwrap()
}

/// A conversation in the middle of a stream, with something typed.
fn under_way() -> (Stage, Screen) {
    let (mut stage, mut screen) = (Stage::new(100, 40, true), Screen::default());
    stage.status = "strict mode · code writing · 12.3k tokens · $0.0125".to_owned();
    stage.activity = "⠙ writing  3 s  Ctrl-C ends it".to_owned();
    (0..50).for_each(|_| stage.say(LINE));
    stage.say("A paragraph that goes on over a few rows of the screen, ".repeat(8).as_str());
    stage.editor.insert("what I type meanwhile");
    let _drawn = stage.draw(&mut screen);
    (stage, screen)
}

#[divan::bench]
fn token_to_bytes_written(bencher: Bencher) {
    let ((mut stage, mut screen), mut out, mut count) = (under_way(), sink(), 0_u32);
    bencher.bench_local(|| {
        count += 1;
        stage.say(if count.is_multiple_of(20) { "token.\n" } else { "token " });
        let text = stage.draw(&mut screen);
        out.write_all(black_box(text.as_bytes())).unwrap();
    });
}

#[divan::bench]
fn key_to_echo_while_a_stream_runs(bencher: Bencher) {
    let ((mut stage, mut screen), mut out) = (under_way(), sink());
    bencher.bench_local(|| {
        stage.editor.insert("x");
        if stage.editor.text().len() > 200 {
            drop(stage.editor.take());
        }
        stage.say("token ");
        let text = stage.draw(&mut screen);
        out.write_all(black_box(text.as_bytes())).unwrap();
    });
}

#[divan::bench]
fn bare_write_of_a_token(bencher: Bencher) {
    let mut out = sink();
    bencher.bench_local(|| out.write_all(black_box(b"token ")).unwrap());
}

fn diff() -> String {
    let line = |number: u32| match number % 3 {
        0 => format!("+    let value_{number} = compute({number});\n"),
        1 => format!("-    let old_{number} = {number};\n"),
        _ => format!("     unchanged line {number}\n"),
    };
    (0..100_000).map(line).collect()
}

fn opened(text: String) -> Pager {
    let style = |line: &str| if line.starts_with('+') { Style::GOOD } else { Style::PLAIN };
    let mut pager = Pager::new("diff", text, style, true);
    pager.resize(100, 40);
    pager
}

#[divan::bench(sample_count = 20)]
fn open_a_diff_of_100_000_lines(bencher: Bencher) {
    let (text, mut out) = (diff(), sink());
    bencher.with_inputs(|| text.clone()).bench_local_values(|text| {
        let rows = opened(text).rows().concat();
        out.write_all(black_box(rows.as_bytes())).unwrap();
    });
}

#[divan::bench(sample_count = 20)]
fn page_to_its_end(bencher: Bencher) {
    let (mut pager, mut out) = (opened(diff()), sink());
    bencher.bench_local(|| {
        pager.press(Page::Top);
        pager.press(Page::End);
        let rows = pager.rows().concat();
        out.write_all(black_box(rows.as_bytes())).unwrap();
    });
}

#[divan::bench(sample_count = 20)]
fn bare_write_of_that_diff(bencher: Bencher) {
    let (text, mut out) = (diff(), sink());
    bencher.bench_local(|| out.write_all(black_box(text.as_bytes())).unwrap());
}
