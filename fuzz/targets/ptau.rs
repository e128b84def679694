//! The header of a powers of tau file is refused or read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem_formats::PtauHeader;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = PtauHeader::parse(bytes) {
        assert!(header.power <= 32);
    }
});
