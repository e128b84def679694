//! Keys that a worker was told to load before a job needs them, and who waits for that.

use std::time::{Duration, Instant};
use tokio::sync::oneshot::Sender;

/// What came of it: a word and a sentence where the key is not on the device.
pub(crate) type Loaded = Result<(), (String, String)>;

/// Those that a process has not answered yet. It loads one at a time.
#[derive(Default)]
pub(super) struct Loads {
    all: Vec<(String, Vec<Sender<Loaded>>)>,
    /// Since when the one that is loaded may take its time.
    since: Option<Instant>,
}

impl Loads {
    /// Adds the key of this hash, and who waits for it; whether the process is to be told.
    pub(super) fn add(&mut self, hash: &str, who: Option<Sender<Loaded>>) -> bool {
        if let Some((_, waiting)) = self.all.iter_mut().find(|(known, _)| known == hash) {
            waiting.extend(who);
            return false;
        }
        self.since.get_or_insert_with(Instant::now);
        self.all.push((hash.into(), who.into_iter().collect()));
        true
    }

    /// Tells who waits what came of a load.
    pub(super) fn end(&mut self, hash: &str, loaded: &Loaded) {
        let ended;
        (ended, self.all) = std::mem::take(&mut self.all).into_iter().partition(|(known, _)| known == hash);
        self.since = (!self.all.is_empty()).then(Instant::now);
        // One that does not wait any more hears nothing.
        ended.into_iter().flat_map(|(_, waiting)| waiting).for_each(|who| drop(who.send(loaded.clone())));
    }

    /// Whether a load takes longer than this.
    pub(super) fn are_late(&self, bound: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() > bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::channel;

    #[test]
    fn who_waits_for_a_key_hears_of_that_key() {
        let mut loads = Loads::default();
        assert!(!loads.are_late(Duration::ZERO));
        let (one, mut a) = channel();
        let (two, mut b) = channel();
        let (three, mut c) = channel();
        assert_eq!(
            [loads.add("x", Some(one)), loads.add("y", Some(two)), loads.add("x", Some(three))],
            [true, true, false]
        );
        assert!(!loads.add("x", None));
        std::thread::sleep(Duration::from_millis(2));
        assert!(loads.are_late(Duration::from_millis(1)) && !loads.are_late(Duration::from_secs(60)));
        let refused = Err(("bad_input".to_string(), "no key".to_string()));
        loads.end("x", &refused);
        assert_eq!((a.try_recv().unwrap(), c.try_recv().unwrap()), (refused.clone(), refused));
        assert!(b.try_recv().is_err());
        loads.end("none", &Ok(()));
        // The time of the next one runs anew.
        assert!(!loads.are_late(Duration::from_secs(60)));
        loads.end("y", &Ok(()));
        assert_eq!(b.try_recv().unwrap(), Ok(()));
        assert!(!loads.are_late(Duration::ZERO));
        // The end of the process is heard, too.
        let (four, mut d) = channel();
        assert!(loads.add("x", Some(four)));
        drop(loads);
        assert!(d.try_recv().is_err());
    }
}
