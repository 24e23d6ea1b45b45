//! What can be said of Python without running it.
//!
//! [`scan`] asks whether a skill uses what is forbidden, [`check`] whether it is what was proposed. Both look at the
//! syntax tree, never at the text alone, and neither runs, imports or asks Python anything.
//!
//! Python cannot be judged completely from its text: what is refused here is what can be seen, and the sandbox of a run
//! holds for the rest. So the rules name what a skill may use where that is possible (modules, their names, attributes
//! with two underscores) and refuse whatever would make the rest of the reading uncertain: a module as a value, a name
//! that is computed, an attribute of an import that is replaced.
//!
//! **Invariant.** A file that this module and Python could read differently is refused.
//!
//! **Invariant.** Any bytes give an answer: size, nesting and the number of findings are bounded before and while a file
//! is walked.

mod attributes;
mod imports;
mod invariants;
mod leaks;
mod modules;
mod parse;
mod paths;
mod report;
mod rules;
mod scan;
mod tests_only;
mod text;

pub use invariants::check;
pub use rules::{PatternRule, RulesError, ScanRules};
pub use scan::scan;
