//! What is read from recorded runs.
use crate::fixtures::*;
#[test]
fn show() {
    for case in CASES {
        println!("== {case}");
        match recorded(case).read() {
            Ok(r) => println!("green={}\n{}", r.is_green(), outline(&r)),
            Err(e) => println!("ERR {e}"),
        }
    }
}
