//! The messages of gRPC, a client and what a server implements, as `proto/tandem/v1/prover.proto` describes them and
//! `scripts/proto.sh` makes them.

#[allow(missing_docs, clippy::all, unreachable_pub)]
#[path = "tandem.v1.rs"]
mod generated;

pub use generated::*;

/// The description in the form that reflection answers: a `FileDescriptorSet` of protobuf.
pub const DESCRIPTOR: &[u8] = include_bytes!("tandem.v1.bin");

/// How much of a witness there is, and nothing of it.
impl std::fmt::Debug for submit_request::Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            submit_request::Part::Head(head) => head.fmt(f),
            submit_request::Part::Piece(piece) => write!(f, "{} bytes", piece.len()),
        }
    }
}

impl std::fmt::Debug for SubmitRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.part.fmt(f)
    }
}

/// As that of a witness by itself.
impl std::fmt::Debug for submit_batch_request::Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            submit_batch_request::Part::Head(head) => head.fmt(f),
            submit_batch_request::Part::File(file) => file.fmt(f),
            submit_batch_request::Part::Piece(piece) => write!(f, "{} bytes", piece.len()),
        }
    }
}

impl std::fmt::Debug for SubmitBatchRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.part.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_a_witness_is_not_shown() {
        let part = Some(submit_request::Part::Piece(vec![83; 5].into()));
        assert_eq!(format!("{:?}", SubmitRequest { part }), "Some(5 bytes)");
        let part = Some(submit_batch_request::Part::Piece(vec![83; 5].into()));
        assert_eq!(format!("{:?}", SubmitBatchRequest { part }), "Some(5 bytes)");
    }
}
