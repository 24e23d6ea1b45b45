//! What keys mean.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::surface::Page;

/// What a person wants with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Insert(char),
    Newline,
    Submit,
    Complete,
    CompleteBack,
    Escape,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    Up,
    Down,
    Backspace,
    /// Deletes what is behind the cursor; on an empty line it leaves.
    DeleteOrLeave,
    Delete,
    KillWordLeft,
    KillWordRight,
    KillToBlank,
    KillToStart,
    KillToEnd,
    Yank,
    Transpose,
    Undo,
    Redo,
    Search,
    Clear,
    Interrupt,
    Suspend,
}

/// What a key means while a line is edited.
pub(crate) fn action(key: KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let alt = key.modifiers.contains(KeyModifiers::ALT);
    let word = control || alt;
    Some(match key.code {
        KeyCode::Char(c) if control => return controlled(c),
        KeyCode::Char(c) if alt => return with_alt(c),
        KeyCode::Char(c) => Action::Insert(c),
        KeyCode::Enter if !key.modifiers.is_empty() => Action::Newline,
        KeyCode::Enter => Action::Submit,
        KeyCode::Tab => Action::Complete,
        KeyCode::BackTab => Action::CompleteBack,
        KeyCode::Esc => Action::Escape,
        KeyCode::Left if word => Action::WordLeft,
        KeyCode::Right if word => Action::WordRight,
        KeyCode::Left => Action::Left,
        KeyCode::Right => Action::Right,
        KeyCode::Home => Action::Home,
        KeyCode::End => Action::End,
        KeyCode::Up => Action::Up,
        KeyCode::Down => Action::Down,
        KeyCode::Backspace if word => Action::KillWordLeft,
        KeyCode::Backspace => Action::Backspace,
        KeyCode::Delete if word => Action::KillWordRight,
        KeyCode::Delete => Action::Delete,
        _ => return None,
    })
}

fn controlled(c: char) -> Option<Action> {
    Some(match c.to_ascii_lowercase() {
        'a' => Action::Home,
        'b' => Action::Left,
        'c' => Action::Interrupt,
        'd' => Action::DeleteOrLeave,
        'e' => Action::End,
        'f' => Action::Right,
        'g' => Action::Escape,
        'h' => Action::Backspace,
        'j' => Action::Newline,
        'k' => Action::KillToEnd,
        'l' => Action::Clear,
        'n' => Action::Down,
        'p' => Action::Up,
        'r' => Action::Search,
        't' => Action::Transpose,
        'u' => Action::KillToStart,
        'w' => Action::KillToBlank,
        'y' => Action::Yank,
        'z' => Action::Suspend,
        // Terminals send one byte for all of these.
        '_' | '/' | '7' | '-' => Action::Undo,
        _ => return None,
    })
}

fn with_alt(c: char) -> Option<Action> {
    Some(match c {
        'b' | 'B' => Action::WordLeft,
        'f' | 'F' => Action::WordRight,
        'd' | 'D' => Action::KillWordRight,
        '_' | '/' => Action::Redo,
        '\r' | '\n' => Action::Newline,
        _ => return None,
    })
}

/// What a key means in the pager.
pub(crate) enum Paged {
    Press(Page),
    Leave,
    Nothing,
}

/// What a key means in the pager, where letters may be what is looked for.
pub(crate) fn paged(key: KeyEvent, typing: bool) -> Paged {
    if key.kind == KeyEventKind::Release {
        return Paged::Nothing;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let page = match key.code {
        KeyCode::Char('c') if control => return Paged::Leave,
        KeyCode::Char('d' | 'f' | 'v') if control && !typing => Page::Further,
        KeyCode::Char('u' | 'b') if control && !typing => Page::Back,
        KeyCode::Char(_) if control => return Paged::Nothing,
        KeyCode::Char(c) if typing => Page::Letter(c),
        KeyCode::Backspace if typing => Page::Erase,
        KeyCode::Enter if typing => Page::Enter,
        KeyCode::Esc if typing => Page::Escape,
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Paged::Leave,
        KeyCode::Char(' ' | 'f') | KeyCode::PageDown => Page::Further,
        KeyCode::Char('b') | KeyCode::PageUp => Page::Back,
        KeyCode::Char('d') => Page::HalfDown,
        KeyCode::Char('u') => Page::HalfUp,
        KeyCode::Char('j') | KeyCode::Down | KeyCode::Enter => Page::Down,
        KeyCode::Char('k') | KeyCode::Up => Page::Up,
        KeyCode::Char('g') | KeyCode::Home => Page::Top,
        KeyCode::Char('G') | KeyCode::End => Page::End,
        KeyCode::Char('/') => Page::Search,
        KeyCode::Char('n') => Page::Next,
        KeyCode::Char('N') => Page::Previous,
        _ => return Paged::Nothing,
    };
    Paged::Press(page)
}
