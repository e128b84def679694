//! Requests, good ones and random changes of them.

use super::frames::{call, field, Frame, PREFACE};
use crate::command_line::case::{change_bytes, Random};

/// A request.
#[derive(Debug, Clone)]
pub(super) enum Case {
    /// Lines of a head without its length, and a body, whose length is told.
    Http { head: Vec<u8>, body: Vec<u8> },
    /// Of HTTP/2, behind its preface.
    Frames(Vec<Frame>),
    /// As it is.
    Bytes(Vec<u8>),
}

/// A tar archive of one file.
fn archive(name: &str, content: &[u8]) -> Vec<u8> {
    let mut head = [0u8; 512];
    head[..name.len()].copy_from_slice(name.as_bytes());
    head[100..107].copy_from_slice(b"0000644");
    head[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    head[156] = b'0';
    head[257..263].copy_from_slice(b"ustar\0");
    head[148..156].fill(b' ');
    let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
    head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let fill = vec![0; content.len().next_multiple_of(512) - content.len() + 1024];
    [&head, content, &fill].concat()
}

/// Good requests, made of a witness, a key, a program, inputs and a verification key.
pub(super) fn seeds([witness, key, program, inputs, _]: &[Vec<u8>; 5]) -> Vec<Case> {
    let id = "0123456789abcdef0123456789abcdef";
    let http = |line: String, more: &str, body: &[u8]| Case::Http {
        head: format!("{line} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{more}").into_bytes(),
        body: body.to_vec(),
    };
    let mut all = Vec::new();
    for address in [
        "health",
        "ready",
        "version",
        "openapi.json",
        "metrics",
        "status",
        "v1/overview",
        "v1/trace?minutes=1",
        "v1/workers",
        "v1/nodes",
        "v1/jobs?state=done&limit=2",
        "v1/keys",
        "v1/keys/product",
        "api/v1/status",
        "",
    ] {
        all.push(http(format!("GET /{address}"), "", b""));
    }
    for address in ["", "/result", "?wait=1", "/events"] {
        all.push(http(format!("GET /v1/jobs/{id}{address}"), "", b""));
    }
    all.extend([
        http(format!("POST /v1/jobs/{id}/cancel"), "", b""),
        http(format!("GET /v1/batches/{id}"), "", b""),
        http("POST /v1/keys/product/preload?wait=1".into(), "", b""),
        http("POST /v1/keys/product/evict".into(), "", b""),
        http("DELETE /v1/keys/other".into(), "", b""),
        http("POST /v1/jobs?key=product&priority=5&deadline_seconds=60".into(), "idempotency-key: a-1\r\n", witness),
        http("POST /v1/jobs?key=product".into(), "content-type: application/json\r\n", inputs),
        http(
            "POST /v1/jobs?key=product".into(),
            "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n",
            witness,
        ),
        http("POST /v1/batches?key=product".into(), "", &archive("a.wtns", witness)),
        http("POST /v1/batches?key=product".into(), "", &archive("b.json", inputs)),
        http("PUT /v1/keys/again".into(), "", key),
        http("PUT /v1/keys/product/program".into(), "", program),
        http("POST /v1/keys".into(), "content-type: application/json\r\n", br#"{"name": "p", "path": "product.zkey"}"#),
        http("POST /input/product".into(), "", inputs),
        http("POST /cancel".into(), "", b""),
        http(
            "POST /api/v1/proof/generate".into(),
            "content-type: application/json\r\n",
            br#"{"circuit_name": "product", "inputs": {"a": "3", "b": "11"}}"#,
        ),
        http(
            "POST /api/v1/proof/verify".into(),
            "content-type: application/json\r\n",
            br#"{"circuit_name": "product", "zk_proof": {"proof": {}, "pub_signals": ["33"]}}"#,
        ),
    ]);
    all.extend(calls(witness, key).into_iter().map(Case::Frames));
    all
}

/// Calls of gRPC.
fn calls(witness: &[u8], key: &[u8]) -> Vec<Vec<Frame>> {
    let id = field(1, b"0123456789abcdef0123456789abcdef");
    let prover = |method: &str, messages: &[Vec<u8>]| call(&format!("/tandem.v1.Prover/{method}"), messages);
    let head = field(1, &[field(1, b"product"), field(5, b"b-2")].concat());
    let piece = field(2, &witness[..witness.len().min(1 << 13)]);
    // Of a batch, files come between head and pieces.
    let file = |name: &[u8]| field(2, &field(1, name));
    let part = field(3, &witness[..witness.len().min(1 << 13)]);
    let files = [field(1, &field(1, b"product")), file(b"a"), part.clone(), file(b"b"), part];
    vec![
        prover("SubmitBatch", &files),
        prover("GetBatch", std::slice::from_ref(&id)),
        prover("WaitBatch", std::slice::from_ref(&id)),
        prover("GetBatchResults", std::slice::from_ref(&id)),
        prover("CancelBatch", std::slice::from_ref(&id)),
        prover("PreloadKey", &[[field(1, b"product"), vec![0x10, 1]].concat()]),
        prover("Submit", &[head, piece]),
        prover("GetVersion", &[Vec::new()]),
        prover("GetJob", std::slice::from_ref(&id)),
        prover("WaitJob", std::slice::from_ref(&id)),
        prover("CancelJob", std::slice::from_ref(&id)),
        prover("GetResult", std::slice::from_ref(&id)),
        prover("ListJobs", &[vec![0x08, 3, 0x10, 2]]),
        prover("ListKeys", &[Vec::new()]),
        prover("GetKey", &[field(1, b"product")]),
        prover("RegisterKey", &[[field(1, b"q"), field(2, b"product.zkey")].concat()]),
        prover("UploadKey", &[field(1, b"new"), field(2, &key[..key.len().min(1 << 13)])]),
        prover("RemoveKey", &[field(1, b"none")]),
        prover("EvictKey", &[field(1, b"product")]),
        call("/grpc.health.v1.Health/Check", &[Vec::new()]),
        call("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &[field(7, b"")]),
    ]
}

impl Case {
    /// What is sent.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Case::Http { head, body } => {
                let length = format!("content-length: {}\r\n\r\n", body.len());
                [&head[..], length.as_bytes(), body].concat()
            }
            Case::Frames(frames) => [PREFACE.to_vec(), frames.iter().flat_map(Frame::bytes).collect()].concat(),
            Case::Bytes(bytes) => bytes.clone(),
        }
    }

    /// With one to four changes: of the head, of the body or a frame, or of all bytes.
    pub(super) fn changed(&self, random: &mut Random, seeds: &[Case]) -> Case {
        let other = random.of(seeds).bytes();
        let others = [(String::new(), other)];
        let mut case = self.clone();
        for _ in 0..1 + random.below(4) {
            if random.below(6) == 0 {
                case = Case::Bytes(case.bytes());
            }
            match &mut case {
                Case::Http { body, .. } if random.below(2) == 0 && !body.is_empty() => {
                    change_bytes(body, random, &others)
                }
                Case::Http { head, .. } => change_bytes(head, random, &others),
                Case::Frames(frames) => change_frames(frames, random, &others),
                Case::Bytes(bytes) => change_bytes(bytes, random, &others),
            }
        }
        case
    }
}

fn change_frames(frames: &mut Vec<Frame>, random: &mut Random, others: &[(String, Vec<u8>)]) {
    let place = random.below(frames.len());
    match random.below(6) {
        0 => frames.insert(place, frames[place].clone()),
        1 if frames.len() > 1 => _ = frames.remove(place),
        2 => {
            let other = random.below(frames.len());
            frames.swap(place, other);
        }
        _ => frames[place].change(random, others),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_differ_and_can_be_sent() {
        let files = [vec![1; 200], vec![2; 20_000], vec![3; 50], b"{}".to_vec(), Vec::new()];
        let seeds = seeds(&files);
        let whole = seeds.iter().map(Case::bytes).collect::<std::collections::BTreeSet<_>>();
        assert!(whole.len() > 45, "{}", whole.len());
        let mut random = Random(99);
        let changed =
            (0..2000).filter(|&i| !whole.contains(&seeds[i % seeds.len()].changed(&mut random, &seeds).bytes()));
        assert!(changed.count() > 1900);
        let tar = archive("a.wtns", &[7; 513]);
        assert_eq!(
            (tar.len(), &tar[512..514], &tar[124..136]),
            (512 + 1024 + 1024, &[7u8, 7][..], &b"00000001001\0"[..])
        );
    }
}
