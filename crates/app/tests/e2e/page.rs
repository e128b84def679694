//! The status page of a service in a browser, while it proves.

use crate::support::{demo, run, tandem, text};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn the_status_page_in_a_browser() {
    super::packages();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("page");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let data = folder.join("data");
    let (token, _) = run(0, &["tokens", "add", "page", "--role", "admin", "--data", text(&data)]);
    let token = token.trim();
    let mut command = tandem();
    command.args(["serve", "--tokens", "--listen", "127.0.0.1:0", "--worker", "cpu", "--data", text(&data)]);
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut address).unwrap();
    let address = address.trim();
    let call = |args: &[&str]| {
        let output = tandem().args(args).env("TANDEM_SERVER", address).env("TANDEM_TOKEN", token).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    let (zkey, wtns) = (demo("membership.zkey"), demo("membership.wtns"));
    call(&["keys", "add", "member", text(&zkey)]);
    let prove = || {
        let id = call(&["submit", "member", text(&wtns)]);
        call(&["wait", &id]);
    };
    prove();
    let is_over = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        // Proofs are made while somebody looks.
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                prove();
            }
        });
        let script = super::root().join("tests/e2e/page.mjs");
        let args = [text(&script), address, text(&folder)];
        let output = std::process::Command::new("node").args(args).env("TANDEM_TOKEN", token).output();
        is_over.store(true, Ordering::SeqCst);
        output.expect("node cannot be started; install it")
    });
    let _ = server.kill();
    let _ = server.wait();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.trim() == "ok", "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        std::fs::read_dir(&folder)
            .unwrap()
            .filter(|entry| { entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "png") })
            .count(),
        4
    );
}
