//! A program that ends without dropping its outputs. Alone in its program, since no file can be made after it.

use std::io::Write;
use tandem_formats::{remove_unfinished, Output};

#[test]
fn interruption_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut output = Output::create(folder.path().join("x")).unwrap();
    output.write_all(&[1; 1 << 21]).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    remove_unfinished();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // Nothing is begun any more: whoever tries waits for the end of the program.
    let (done, is_done) = std::sync::mpsc::channel();
    let path = folder.path().join("y");
    std::thread::spawn(move || done.send(Output::create(path).map(std::mem::forget)));
    assert!(is_done.recv_timeout(std::time::Duration::from_secs(1)).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // Dropping it would wait for the end of the program, as it should.
    std::mem::forget(output);
}
