//! fluffy
fn main() {}
