//! `fluffy session export`: a session written down, proved against the ledger first.

use fluffy_agent::{Said, said, spending, transcript};
use fluffy_base::SessionId;
use fluffy_kernel::{Dossier, TurnRecord};
use serde_json::{Value, json};

use super::list::meant;
use super::markdown::markdown;
use crate::args::{ExportForm, ExportSessionArgs};
use crate::commands;
use crate::drive::stored;
use crate::explain::{CliError, DONE};
use crate::output::Output;
use crate::place::Place;

/// The version of the JSON form.
const VERSION: u32 = 1;

pub(super) fn run(
    place: &Place,
    args: &ExportSessionArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let id = meant(place, args.id.as_deref())?;
    let text = match &args.form {
        ExportForm { transcript: true, .. } => {
            transcript(&stored(place, id.as_str())?)?.join("\n") + "\n"
        }
        ExportForm { json: true, .. } => {
            let dossier = dossier(place, &id)?;
            format!("{:#}\n", as_json(&id, &dossier)?)
        }
        // Exactly one of them was typed.
        ExportForm { .. } => {
            let dossier = dossier(place, &id)?;
            let steps = dossier.diffs(&place.sessions().join(id.as_str()));
            markdown(&id, &dossier, &said(&dossier.session)?, &steps)
        }
    };
    match &args.out {
        None => output.raw().write_all(text.as_bytes())?,
        Some(path) => commands::write(path, text.as_bytes())?,
    }
    Ok(DONE)
}

fn dossier(place: &Place, id: &SessionId) -> Result<Dossier, CliError> {
    let key = place.existing_key()?.ok_or(CliError::NoLedger)?;
    Ok(Dossier::prove(&place.layout(), key.verifying_key(), id.as_str())?)
}

/// The form that `docs/tasks.md` describes.
fn as_json(id: &SessionId, dossier: &Dossier) -> Result<Value, CliError> {
    let session = &dossier.session;
    let said = said(session)?;
    let turns = said.iter().zip(&session.turns).map(turn);
    let spending = spending(session)?;
    let steps = session.open_steps();
    let steps = steps.map(|(number, files)| json!({ "step": number, "files": files }));
    let pins = session.pins().iter();
    let pins = pins.map(|pin| json!({ "path": pin.path.to_string(), "text": pin.text }));
    Ok(json!({
        "v": VERSION,
        "kind": "fluffy-session",
        "id": id.as_str(),
        "task": session.task,
        "messages": session.messages,
        "started_ms": session.started_ms,
        "state": session.standing(),
        "mode": session.mode().name(),
        "provider": session.driver.as_ref().map(|driver| &driver.provider),
        "model": session.driver.as_ref().map(|driver| &driver.model),
        "usage": spending.usage,
        "cost_micros": spending.cost,
        "forked_from": session.forked,
        "archived_ms": session.archived.map(|archived| archived.since_ms),
        "pins": pins.collect::<Vec<_>>(),
        "turns": turns.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
        "summary": session.done(),
        "merged": session.merged(),
        "commits": session.commits(),
        "ledger": {
            "segment": dossier.proved.segment,
            "size": dossier.proved.size,
            "signed": dossier.proved.signed,
            "root": dossier.proved.root,
        },
        "entries": dossier.entries,
    }))
}

fn turn((said, record): (&Said, &TurnRecord)) -> Value {
    let calls = said.calls.iter().map(|call| {
        let answer = record.answers.get(&call.id).map(|answer| {
            json!({ "allowed": answer.allowed, "success": answer.success, "content": answer.content })
        });
        json!({ "id": call.id, "tool": call.name, "arguments": call.arguments, "answer": answer })
    });
    json!({ "text": said.text, "usage": said.usage, "cost_micros": said.cost,
        "calls": calls.collect::<Vec<_>>() })
}
