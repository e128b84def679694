//! What can go wrong, which code it has, and which exit status it means.

use std::path::Path;
use tandem_formats::FormatError;

/// Result of the engine's operations.
pub type Result<T> = std::result::Result<T, Error>;

/// One failure, worded for the person at the terminal. Each message is one line.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A proof was checked and is not valid.
    #[error("{0}")]
    InvalidProof(String),
    /// A file, an option or a witness is not what it should be.
    #[error("{0}")]
    BadInput(String),
    /// A witness does not satisfy the circuit of the key.
    #[error("{0}")]
    Unsatisfied(String),
    /// A device failed or is missing.
    #[error("{0}")]
    Device(String),
    /// A device, or the machine, has too little memory.
    #[error("{0}")]
    OutOfMemory(String),
    /// The caller asked to stop ([`crate::Progress::cancelled`]).
    #[error("interrupted")]
    Interrupted,
    /// One part of this program asked another for what cannot be: a defect of the program.
    #[error("a defect of tandem, please report it: {0}")]
    Internal(String),
}

/// What kind of failure an [`Error`] is, as a number for other languages. A number that was once given out keeps its meaning; there
/// may be more in later versions. 0 is success and no error's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum ErrorCode {
    /// A proof was checked and is not valid.
    InvalidProof = 1,
    /// A file, an option or a witness is not what it should be: the same call fails again.
    BadInput = 2,
    /// A witness does not satisfy the circuit of the key: the same call fails again.
    Unsatisfied = 3,
    /// A device failed or is missing. The same call may succeed later, or elsewhere.
    Device = 4,
    /// A device, or the machine, has too little memory. The same call may succeed later, or elsewhere.
    OutOfMemory = 5,
    /// The caller asked to stop.
    Interrupted = 6,
    /// A defect of this program.
    Internal = 7,
}

impl ErrorCode {
    /// All of them.
    pub const ALL: [ErrorCode; 7] = [
        ErrorCode::InvalidProof,
        ErrorCode::BadInput,
        ErrorCode::Unsatisfied,
        ErrorCode::Device,
        ErrorCode::OutOfMemory,
        ErrorCode::Interrupted,
        ErrorCode::Internal,
    ];

    /// The number.
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The code with this number.
    pub fn from_number(number: u32) -> Option<ErrorCode> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// Whether the same call may succeed at another time or on another machine.
    pub fn is_retryable(self) -> bool {
        matches!(self, ErrorCode::Device | ErrorCode::OutOfMemory)
    }

    /// The exit status of a program that ends with such an error: 1 the proof is not valid, 2 bad input, 3 the device failed or has too
    /// little memory, or a defect of the program, 130 interrupted.
    pub fn exit_status(self) -> u8 {
        match self {
            ErrorCode::InvalidProof => 1,
            ErrorCode::BadInput | ErrorCode::Unsatisfied => 2,
            ErrorCode::Device | ErrorCode::OutOfMemory | ErrorCode::Internal => 3,
            ErrorCode::Interrupted => 130,
        }
    }
}

impl Error {
    /// Its code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Error::InvalidProof(_) => ErrorCode::InvalidProof,
            Error::BadInput(_) => ErrorCode::BadInput,
            Error::Unsatisfied(_) => ErrorCode::Unsatisfied,
            Error::Device(_) => ErrorCode::Device,
            Error::OutOfMemory(_) => ErrorCode::OutOfMemory,
            Error::Interrupted => ErrorCode::Interrupted,
            Error::Internal(_) => ErrorCode::Internal,
        }
    }

    /// The exit status of a program that ends with this error ([`ErrorCode::exit_status`]).
    pub fn exit_status(&self) -> u8 {
        self.code().exit_status()
    }

    /// Bad input.
    pub fn input(message: impl Into<String>) -> Self {
        Error::BadInput(message.into())
    }

    /// A number that is written well and is no element of its field makes a proof that is not valid.
    pub(crate) fn of_element(error: FormatError) -> Self {
        match error.is_no_element() {
            true => Error::InvalidProof(format!("{error}; the proof is not valid")),
            false => error.into(),
        }
    }

    /// An error of the prover over what came from `file`.
    pub(crate) fn prover(error: tandem_groth16::Error, file: &Path) -> Self {
        use tandem_groth16::Error as E;
        match error {
            E::Backend(e) => e.into(),
            E::Random(_) => Error::Device(error.to_string()),
            E::Interrupted => Error::Interrupted,
            // The sink names the file that it writes.
            E::Output(message) => Error::BadInput(message),
            E::Key(_) | E::Witness(_) | E::Circuit(_) if file.as_os_str().is_empty() => Error::input(error.to_string()),
            E::Key(_) | E::Witness(_) | E::Circuit(_) => Error::input(format!("{}: {error}", file.display())),
        }
    }
}

impl From<FormatError> for Error {
    fn from(error: FormatError) -> Self {
        Error::BadInput(error.to_string())
    }
}

/// Who asked a backend for what cannot be is this program; all else is the device's, or for want of memory. The text is kept whole.
impl From<tandem_ops::Error> for Error {
    fn from(error: tandem_ops::Error) -> Self {
        use tandem_ops::Error as E;
        let text = error.to_string();
        match error {
            E::OutOfMemory { .. } => Error::OutOfMemory(text),
            // The file is named.
            E::Unread { .. } => Error::BadInput(text),
            E::Invalid { .. } => Error::Internal(text),
            E::Device { .. } | E::Threads { .. } | E::Disagree { .. } => Error::Device(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_groth16::Error as E;
    use tandem_ops::Error as Fault;

    /// Programs in other languages have these numbers: one that changes breaks them.
    #[test]
    fn codes_keep_their_numbers() {
        let numbers: Vec<_> = ErrorCode::ALL.iter().map(|code| (code.number(), format!("{code:?}"))).collect();
        let expected = ["InvalidProof", "BadInput", "Unsatisfied", "Device", "OutOfMemory", "Interrupted", "Internal"];
        assert_eq!(numbers, (1..).zip(expected.map(String::from)).collect::<Vec<_>>());
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_number(code.number()), Some(code));
        }
        assert_eq!((ErrorCode::from_number(0), ErrorCode::from_number(8)), (None, None));
        let statuses = ErrorCode::ALL.map(ErrorCode::exit_status);
        assert_eq!(statuses, [1, 2, 2, 3, 3, 130, 3]);
        assert_eq!(ErrorCode::ALL.map(ErrorCode::is_retryable), [false, false, false, true, true, false, false]);
    }

    #[test]
    fn faults_of_a_backend_keep_their_kind_and_their_text() {
        let (device, code_name) = (String::from("GPU 3"), String::from("cudaErrorIllegalAddress"));
        let text = String::from("an illegal memory access was encountered");
        let broken = Fault::Device { op: "msm", device: device.clone(), code: 700, code_name, text };
        for (fault, code, said) in [
            (broken, ErrorCode::Device, "GPU 3 failed: cudaErrorIllegalAddress (700), an illegal memory access"),
            (
                Fault::OutOfMemory { op: "alloc", device, wanted: 9, free: 7 },
                ErrorCode::OutOfMemory,
                "needs 9 bytes, 7",
            ),
            (Fault::invalid("digits", "11 scalars for 10"), ErrorCode::Internal, "digits: 11 scalars for 10"),
            (Fault::Threads { reason: "no".into() }, ErrorCode::Device, "no thread can be started"),
            (Fault::Unread { reason: "a.zkey: it changed".into() }, ErrorCode::BadInput, "a.zkey: it changed"),
        ] {
            for error in [Error::from(fault.clone()), Error::prover(fault.clone().into(), Path::new("key"))] {
                assert!(error.code() == code && error.to_string().contains(said), "{error}");
            }
        }
    }

    #[test]
    fn statuses_tell_whose_fault_it_is() {
        let invalid = tandem_ops::Error::invalid("msm", "no points");
        for (error, status, text) in [
            (E::Backend(invalid), 3, "no points"),
            (E::Random("no entropy".into()), 3, "no entropy"),
            (E::Interrupted, 130, "interrupted"),
            (E::Output("key.zkey: the disk is full".into()), 2, "key.zkey: the disk is full"),
            (E::Key("no points".into()), 2, "a.zkey: "),
            (E::Witness("no values".into()), 2, "a.zkey: "),
            (E::Circuit("no rows".into()), 2, "a.zkey: "),
        ] {
            let error = Error::prover(error, Path::new("a.zkey"));
            assert!(error.exit_status() == status && error.to_string().contains(text), "{error}");
        }
        assert!(!Error::prover(E::Key("no points".into()), Path::new("")).to_string().starts_with(':'));
        assert_eq!(Error::InvalidProof(String::new()).exit_status(), 1);
    }
}
