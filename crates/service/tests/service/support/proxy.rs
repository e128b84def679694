//! What stands between a node and a server, and does what networks do.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Passes connections on to a port until it is cut: then it keeps them open and passes nothing on, as a network that drops everything.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<State>,
}

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    There,
    Back,
}

/// What befalls a connection when so many bytes have passed in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blow {
    /// It ends.
    Break,
    /// A bit is changed.
    Change,
}

#[derive(Default)]
struct State {
    is_cut: AtomicBool,
    /// Milliseconds before each piece.
    pause: AtomicU64,
    /// The next answer to what has these words is lost, with its connection.
    loses: Mutex<Option<&'static str>>,
    blow: Mutex<Option<(Way, u64, Blow)>>,
}

impl Proxy {
    pub(crate) fn start(to: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, state) = (listener.local_addr().unwrap().port(), Arc::new(State::default()));
        let of = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                let [there, back] = [&server, &client].map(|of| of.try_clone().unwrap());
                let is_lost = Arc::new(AtomicBool::new(false));
                let (state, lost) = (of.clone(), is_lost.clone());
                std::thread::spawn(move || ask(client, there, &state, &lost));
                let state = of.clone();
                std::thread::spawn(move || answer(server, back, &state, &is_lost));
            }
        });
        Proxy { port, state }
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.state.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Waits so long before each piece.
    pub(crate) fn slow(&self, pause: Duration) {
        self.state.pause.store(pause.as_millis() as u64, Ordering::SeqCst);
    }

    pub(crate) fn lose(&self, words: &'static str) {
        *self.state.loses.lock().unwrap() = Some(words);
    }

    pub(crate) fn has_lost(&self) -> bool {
        self.state.loses.lock().unwrap().is_none()
    }

    /// Deals a blow to the connection that has the next byte after so many this way.
    pub(crate) fn strike(&self, way: Way, bytes: u64, blow: Blow) {
        *self.state.blow.lock().unwrap() = Some((way, bytes, blow));
    }

    pub(crate) fn has_struck(&self) -> bool {
        self.state.blow.lock().unwrap().is_none()
    }
}

fn ask(from: TcpStream, to: TcpStream, state: &State, is_lost: &AtomicBool) {
    pass(from, to, state, Way::There, |piece| {
        let mut loses = state.loses.lock().unwrap();
        if loses.is_some_and(|words| piece.windows(words.len()).any(|part| part == words.as_bytes())) {
            is_lost.store(true, Ordering::SeqCst);
            *loses = None;
        }
        true
    });
}

fn answer(from: TcpStream, to: TcpStream, state: &State, is_lost: &AtomicBool) {
    pass(from, to, state, Way::Back, |_| !is_lost.load(Ordering::SeqCst));
}

/// The blow that falls with so many bytes more this way.
fn struck(state: &State, way: Way, count: u64) -> Option<Blow> {
    let mut blow = state.blow.lock().unwrap();
    let (of, bytes, what) = (*blow)?;
    if of != way {
        return None;
    }
    *blow = bytes.checked_sub(count).map(|rest| (way, rest, what));
    blow.is_none().then_some(what)
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &State, way: Way, goes_on: impl Fn(&[u8]) -> bool) {
    let mut piece = [0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        std::thread::sleep(Duration::from_millis(state.pause.load(Ordering::SeqCst)));
        while state.is_cut.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        match struck(state, way, count as u64) {
            Some(Blow::Break) => break,
            Some(Blow::Change) => piece[count - 1] ^= 1,
            None => {}
        }
        if !goes_on(&piece[..count]) || to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
