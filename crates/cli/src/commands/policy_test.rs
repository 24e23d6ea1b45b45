//! `fluffy policy test`: the cases beside a policy, one by one.

use fluffy_base::Excerpt;
use fluffy_policy::read_cases;

use crate::args::TestArgs;
use crate::explain::{CliError, DONE, FAILED};
use crate::output::{Output, Tone};
use crate::place::{OWN_CASES, Place};
use crate::policy_source::{PolicySource, bytes, exists, shown};

pub(crate) fn run(place: &Place, args: &TestArgs, output: &mut Output) -> Result<u8, CliError> {
    let source = PolicySource::find(place, args.policy.as_deref())?;
    let (name, path) = match &args.file {
        Some(file) => (shown(file), file.clone()),
        None => (OWN_CASES.to_owned(), place.cases_file()),
    };
    if !exists(&path)? {
        return Err(CliError::NoCases(name));
    }
    let text = String::from_utf8(bytes(&path)?).map_err(|_| CliError::NotText(path))?;
    let cases = read_cases(&name, &text)?;
    let rules = source.rules(place)?;
    let mut failed = 0;
    for case in &cases {
        let title = Excerpt::new(&case.name, 100);
        match case.failure(rules.iter().map(|rule| &**rule)) {
            None => {
                let word = output.paint(Tone::Good, "ok");
                output.line(format!("{word}      {title}"))?;
            }
            Some(why) => {
                failed += 1;
                let word = output.paint(Tone::Bad, "FAILED");
                output.line(format!("{word}  {title}"))?;
                output.line(format!("        {name}:{}: {why}", case.line))?;
            }
        }
    }
    output.line("")?;
    let policy = source.policy.name();
    output.line(format!("{} passed, {failed} failed, of {policy}", cases.len() - failed))?;
    Ok(if failed == 0 { DONE } else { FAILED })
}
