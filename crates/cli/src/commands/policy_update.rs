//! `fluffy policy update`: a new policy, tried on the past, agreed to by the person here, in force.

use fluffy_base::{Clock as _, Json, KernelReceipt, KernelRequest, ReceiptStatus, SystemClock};
use fluffy_policy::PolicyFile;
use serde_json::{Value, json};

use crate::args::UpdateArgs;
use crate::environment::Environment;
use crate::explain::{CliError, DENIED, DONE, FAILED};
use crate::output::{Output, Tone};
use crate::place::{OWN_POLICY, Place};
use crate::policy_source::{bytes, shown};
use crate::settings::Settings;
use crate::terminal::Terminal;

pub(crate) fn run(
    place: &Place,
    environment: &Environment,
    args: &UpdateArgs,
    output: &mut Output,
) -> Result<u8, CliError> {
    let content = bytes(&args.file)?;
    // What is wrong with the file is told by its own name, before anything is recorded.
    PolicyFile::parse_bytes(&shown(&args.file), &content)?;
    let content = String::from_utf8(content).map_err(|_| CliError::NotText(args.file.clone()))?;
    let mut config = super::kernel(place, &Settings::load(place, environment)?, None)?;
    config.reviewer = Some(Box::new(Terminal { yes: args.yes, phrase: args.phrase.clone() }));
    let kernel = super::boot(config, output)?;
    output.flush()?;
    let receipt = kernel.submit(request(&content, args)?);
    kernel.close()?;
    show(&receipt, output)
}

fn request(content: &str, args: &UpdateArgs) -> Result<KernelRequest, CliError> {
    let now = SystemClock.now_ms();
    let params = Json::new(json!({ "content": content })).map_err(CliError::Json)?;
    let id = format!("policy-update-{now}");
    let intent = format!("replace the policy by {}", shown(&args.file));
    let request = KernelRequest::call(&id, "user", &intent, "policy.update", params);
    Ok(KernelRequest { ts_ms: i64::try_from(now).unwrap_or(i64::MAX), ..request })
}

fn show(receipt: &KernelReceipt, output: &mut Output) -> Result<u8, CliError> {
    let entry = receipt.entry.map_or_else(String::new, |entry| format!(" (entry {entry})"));
    let error = receipt.error.as_deref().unwrap_or("no reason was given");
    match receipt.status {
        ReceiptStatus::Accepted => {
            let result = receipt.tool_result.as_ref().map(Json::value);
            let digest = |key: &str| {
                let value = result.and_then(|result| result.get(key));
                value.and_then(Value::as_str).unwrap_or("unknown").to_owned()
            };
            let word = output.paint(Tone::Good, "Replaced");
            output.line(format!("{word} {OWN_POLICY}{entry}."))?;
            output.line(format!("  before {}", digest("before")))?;
            output.line(format!("  now    {}", digest("policy")))?;
            Ok(DONE)
        }
        ReceiptStatus::Rejected => {
            let word = output.paint(Tone::Bad, "Not replaced");
            output.line(format!("{word}{entry}: {error}"))?;
            Ok(DENIED)
        }
        ReceiptStatus::Failed => {
            let word = output.paint(Tone::Bad, "Failed");
            output.line(format!("{word}{entry}: {error}"))?;
            Ok(FAILED)
        }
    }
}
