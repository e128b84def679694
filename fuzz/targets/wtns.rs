//! A witness is refused, or what is written of it reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::Wtns;

fuzz_target!(|bytes: &[u8]| {
    let Ok(wtns) = Wtns::parse(bytes) else { return };
    let mut written = Vec::new();
    Wtns::write(&mut written, wtns.curve, &wtns.values).expect("written to memory");
    let again = Wtns::parse(&written).expect("our own file");
    assert!(again.curve == wtns.curve && again.values[..] == wtns.values[..]);
});
