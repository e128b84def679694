//! circom's field functions for BN254 and BLS12-381, by the hashes that [`recognise`](super::recognise()) makes of their code. It
//! has been the same in every module of circom 2 so far. A test compares it with modules that circom compiled.

use super::Function;
use super::Function::*;

/// Of one prime: its limbs, and its functions with their hashes.
type Templates = ([u64; 4], [(Function, &'static str); Function::ALL.len()]);

pub(super) const TEMPLATES: &[Templates] = &[(BN254, BN254_CODE), (BLS12_381, BLS12_381_CODE)];

const BN254: [u64; 4] = [0x43e1_f593_f000_0001, 0x2833_e848_79b9_7091, 0xb850_45b6_8181_585d, 0x3064_4e72_e131_a029];
const BLS12_381: [u64; 4] =
    [0xffff_ffff_0000_0001, 0x53bd_a402_fffe_5bfe, 0x3339_d808_09a1_d805, 0x73ed_a753_299d_7d48];

const BN254_CODE: [(Function, &str); Function::ALL.len()] = [
    (IntCopy, "d1a107b8a8f555e8de1952ea29456a0498debdf64f6e391e9fbf3e80c4feb1e3"),
    (IntZero, "18f092b694b106c64dd2db566fc5cc358e53a5256785d98b4f93ff42c750c980"),
    (CopyN, "b57f6307047bbdafae32f8a09b2e40cc94347d68a61b0912a7416dd21ad20a9d"),
    (IsTrue, "8634819c18666dd2edd5cd69b1114f5a846578ac0236571ea4f23737fb023786"),
    (ToLongNormal, "ae763a1db64575be0adff6764cdfc7911c89414cd83c41d8bd1339ca4836486f"),
    (Neg, "989d09eabda72e16657b7f5c788d91b674e152b86fa92031576e6a50ca3c71fb"),
    (ToInt, "e289cd23f2240695243770808a2440643a1a67b79fb35d65322aac5d342b17b5"),
    (Add, "56b19103d712bf8ebb58affc166390b18bfe857a382869f7bb4e2260621d557a"),
    (Sub, "edc6d92c3c0fc07ab4b7b06a9e610aaf5cf643a4a9436704f5bf57ef1605d0fe"),
    (EqR, "c2e8edeb213c30c8a9f0dd28811db7e4c78a304620e8d1791a66b9d3620d1e71"),
    (Eq, "fb1dfef70dacff10a3fb6a9a0eb9be4e3ed8f0ff718619595ca9c718e9a926a9"),
    (Neq, "c2c4e3d70c32c7b8a4ddb2f57da105c21658f5585b12f6ebfd8daa31ca0f72ff"),
    (Gt, "cc4f29db88d5e6be2ad9d9a5e75f927b1c802ffc60203a1f3a034fd563814e2c"),
    (Geq, "9ed27e25c83db19b392037a6579e21ba157095c5c0daf772da27029f8ba153d1"),
    (Lt, "e6949d71795dc92f1fabab99bf6280850a7c6bde76425c7f36f9113a640384c0"),
    (Leq, "f2249ddd4f83fe75cfc1cc75dfa931d52986973185b478cf1ab447b7739dcbb6"),
    (Mul, "446af8db79c15e60012e7395986737dbdca7221ff8c3b10df99c1ee04d6a81e3"),
    (Idiv, "409a8115f2e1729ee09d6bfb2d08cacfb5d77897df51e4669df3ad510b286cd9"),
    (Mod, "715f9f990caff8fefcf822f25c9a1b42530568b6d5ad442757363a11a75f8959"),
    (Inv, "720bc47d90f98a2cb02f2ca7642bf3da62d5c8c16a0cc991b7230e16502069b5"),
    (Div, "0d7b699c1836c42e9ec57351fd2689a1fd9ad13d6f65ee6ae02ff5625acdcf4d"),
    (Pow, "acbfaef62cca9daf8ccb4866ac40996abe001cfa637dea89fb4318cfb23df28e"),
    (Shl, "5cfabea405ab95587bd4e703729fb74ce53afc4f9f9ce900bb8601441509073a"),
    (Shr, "f67643fc67529e8e4a25c09f12f670f89ab3fc184e7813fe7ae475d072762eed"),
    (Band, "89aabc79685f7a24d73523e9c478f4596b7d68dde04590ec0a9c430918e8ed66"),
    (Bor, "7a27d33c2927d5127b9e3ae89a076a8f97ad723d2c6554ec540823e82cc7109c"),
    (Bxor, "42b22a02e27767c2dae36f5c107d584aee755c97d9675a1b252c68ee2cf2b382"),
    (Bnot, "3bc0162f6e46a95ee3a9a4726fd70ca01d19005e18acf9f36ff1a996cf6cf124"),
    (Land, "d96e21834d98e47bff6aa99d270258dfbb3155a261e364068f66955dcb3a4296"),
    (Lor, "3c0914f98ade26a8bcc59d8f5ca52919708a173f2c35b32574a969b45b1d32ed"),
    (Lnot, "54dda65d45894027ad18c537ac8f5a50bfd3d876edf479d8d21b473476e2c7bd"),
];

const BLS12_381_CODE: [(Function, &str); Function::ALL.len()] = [
    (IntCopy, "d1a107b8a8f555e8de1952ea29456a0498debdf64f6e391e9fbf3e80c4feb1e3"),
    (IntZero, "18f092b694b106c64dd2db566fc5cc358e53a5256785d98b4f93ff42c750c980"),
    (CopyN, "b57f6307047bbdafae32f8a09b2e40cc94347d68a61b0912a7416dd21ad20a9d"),
    (IsTrue, "8634819c18666dd2edd5cd69b1114f5a846578ac0236571ea4f23737fb023786"),
    (ToLongNormal, "fd91355a4321a77efd1897f8c7a05dbd4796c0e019055a025e420948307c35be"),
    (Neg, "989d09eabda72e16657b7f5c788d91b674e152b86fa92031576e6a50ca3c71fb"),
    (ToInt, "4efceca37facef4c1af8d4a796e5eff4143c291af87dc5e0c08a1a16f8afb829"),
    (Add, "52dfed064c59aaa2fd3aa325dfce2e59ca4e6e2445eb0b7be80165477ff9335f"),
    (Sub, "f87dcc03fc1de93bcd60cea2d73e9f6ae1f6d864a49158916b078f0716114c74"),
    (EqR, "2f38fa6591a88b1c608cce9d8cfa3e0ef60ffd722331cc705b4ae8a8c861aedd"),
    (Eq, "74218e66bc1c48d519ed803a61342bc3bf5fa3e2246e2bd6313b2d04cc9770cb"),
    (Neq, "3a9f6d1a93269401676275cd8e0f81a35c1b11438f49970f578a87db12ce8558"),
    (Gt, "ec5fe7fe0866bd48aeb92596838e81d7f0567ab1b9cafd31443cdae6f6b7048f"),
    (Geq, "140a8e079d786190f23923b4833ac607efd295206bf95000c2ac565769d215a1"),
    (Lt, "5fae8f856179ccf5c58bc86134cf004b56addfc63bcd371b4e8b9e7c57988213"),
    (Leq, "2361d17a5a5a52439f12846029fed62d2d9532a8dd27b1e31f2ec711518382d4"),
    (Mul, "802d9cedc5ac278476e27afa1d2c8247853aa93bf2b7666ce6530986981a7f7f"),
    (Idiv, "298bc7d874ac8ebedc3420b4d4b6be08d345dceeb89a1acaf5330b78fb6d7334"),
    (Mod, "1a55ff5e6103609397f36771f8bdfc5d7be86cd19b822ebe12972d012c6a2d32"),
    (Inv, "da160a17a66efbecfa3b69a05740c7156d8803a522d7ece3268ddfdd18dbc11e"),
    (Div, "a6da79d37e6677d208d94651c62fc7689ee466e66099c7fbfcf0d8cb172ef25d"),
    (Pow, "4de8a45b727b9fe2933ad336d0df1c2fbc50984112cd3a86c533bff528d68301"),
    (Shl, "1b1c1e6852f1f35bcfb1ca7f1544d2a3cf19fb413bb51b6191623c5586bb61c7"),
    (Shr, "11ec5c0779bcac8334d7df5a66584e80a79c0574e73e1b81703ddc64277cc71f"),
    (Band, "231849cb392654b8815951e3aa761a558cbe62bb41ec770da6afbc55c6f54064"),
    (Bor, "61c148eb236dc74f156d3af7dbdd057731709ac42963963329c9f9e030fe952c"),
    (Bxor, "7c06d2e1f293a57941b5bba781d1369c70c8277c84721474aa5259aa0ed69b5c"),
    (Bnot, "a108410823f132136ea36054cb7d9551f2e6c4b314908529f2e5713fc100aaa7"),
    (Land, "d96e21834d98e47bff6aa99d270258dfbb3155a261e364068f66955dcb3a4296"),
    (Lor, "3c0914f98ade26a8bcc59d8f5ca52919708a173f2c35b32574a969b45b1d32ed"),
    (Lnot, "54dda65d45894027ad18c537ac8f5a50bfd3d876edf479d8d21b473476e2c7bd"),
];
