//! The file of Visual Studio's test platform (`dotnet test --logger trx`), written by the host when the run is over.
//!
//! A test is named by its class and its name with its arguments.

use std::collections::BTreeMap;

use roxmltree::Node;

use super::{Places, Report, ResultsError, TestResult, failed};
use crate::xml::{self, Doctype};

pub(super) fn read_into(
    text: &str,
    _places: &Places<'_>,
    report: &mut Report,
) -> Result<(), ResultsError> {
    let document = xml::parse(text, Doctype::Refused).map_err(ResultsError::malformed)?;
    let root = document.root_element();
    if root.tag_name().name() != "TestRun" {
        return Err(ResultsError::malformed("it is no TRX report"));
    }
    let named = |node: &Node<'_, '_>, name: &str| node.tag_name().name() == name;
    let mut classes = BTreeMap::new();
    for test in root.descendants().filter(|node| named(node, "UnitTest")) {
        let method = test.children().find(|node| named(node, "TestMethod"));
        let class = method.and_then(|node| node.attribute("className"));
        if let (Some(id), Some(class)) = (test.attribute("id"), class) {
            // Some adapters add the assembly.
            classes.insert(id, class.split(',').next().unwrap_or(class));
        }
    }
    for result in root.descendants().filter(|node| named(node, "UnitTestResult")) {
        let name = result.attribute("testName");
        let name = name.ok_or_else(|| ResultsError::malformed("a test has no name"))?;
        let class = result.attribute("testId").and_then(|id| classes.get(id)).copied();
        let class = class.unwrap_or_default();
        let name = name.strip_prefix(class).unwrap_or(name).trim_start_matches('.');
        report.add(class, name, outcome(result)?)?;
    }
    Ok(())
}

fn outcome(result: Node<'_, '_>) -> Result<TestResult, ResultsError> {
    match result.attribute("outcome").unwrap_or_default() {
        "Passed" | "PassedButRunAborted" | "Warning" | "Completed" => Ok(TestResult::Passed),
        "NotExecuted" | "NotRunnable" | "Inconclusive" | "Pending" => Ok(TestResult::Skipped),
        "Failed" | "Error" | "Timeout" | "Aborted" | "Disconnected" => {
            let message = result.descendants().find(|node| node.tag_name().name() == "Message");
            Ok(failed(message.and_then(|node| node.text()).unwrap_or_default()))
        }
        other => Err(ResultsError::malformed(format!("outcome `{other}` is unknown"))),
    }
}
