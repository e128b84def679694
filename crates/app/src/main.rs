//! tandem
fn main() {}
