#pragma once
// The prime fields, as parameters of `Fp`. Every constant follows from the modulus p and the limb count N:
// R = 2^(32 N) mod p, R2 = R^2 mod p, M0 = -p^-1 mod 2^32, M0_64 = -p^-1 mod 2^64, in base fields FOLD = 2^-32 mod p
// (limbs_device.cuh). Limbs are least significant first.
// They are functions and not arrays because device code may not take the address of a host constant.
#include "host_device.cuh"

namespace tandem {

/// N limbs of 32 bits, least significant first.
template <int N> struct Limbs {
    uint32_t limb[N];
};

// Limbs in rows of equal length.
// clang-format off

/// The base field of BN254, 254 bits.
struct Bn254Fp {
    static constexpr int N = 8;
    static constexpr int BITS = 254;
    static constexpr uint32_t M0 = 0xe4866389u;
    static constexpr uint64_t M0_64 = 0x87d20782e4866389ull;
    static TANDEM_HD constexpr Limbs<N> modulus() {
        return {{0xd87cfd47u, 0x3c208c16u, 0x6871ca8du, 0x97816a91u,
                 0x8181585du, 0xb85045b6u, 0xe131a029u, 0x30644e72u}};
    }
    static TANDEM_HD constexpr Limbs<N> r() {
        return {{0xc58f0d9du, 0xd35d438du, 0xf5c70b3du, 0x0a78eb28u,
                 0x7879462cu, 0x666ea36fu, 0x9a07df2fu, 0x0e0a77c1u}};
    }
    static TANDEM_HD constexpr Limbs<N> r2() {
        return {{0x538afa89u, 0xf32cfc5bu, 0xd44501fbu, 0xb5e71911u,
                 0x0a417ff6u, 0x47ab1effu, 0xcab8351fu, 0x06d89f71u}};
    }
    static TANDEM_HD constexpr Limbs<N> fold() {
        return {{0x705c70f2u, 0xb5b479a3u, 0x699a472au, 0xef510c54u,
                 0xb6c9df27u, 0xb27cd0b5u, 0x10b67b2fu, 0x2b32bd30u}};
    }
};

/// The scalar field of BN254, 254 bits.
struct Bn254Fr {
    static constexpr int N = 8;
    static constexpr int BITS = 254;
    static constexpr uint32_t M0 = 0xefffffffu;
    static constexpr uint64_t M0_64 = 0xc2e1f593efffffffull;
    static TANDEM_HD constexpr Limbs<N> modulus() {
        return {{0xf0000001u, 0x43e1f593u, 0x79b97091u, 0x2833e848u,
                 0x8181585du, 0xb85045b6u, 0xe131a029u, 0x30644e72u}};
    }
    static TANDEM_HD constexpr Limbs<N> r() {
        return {{0x4ffffffbu, 0xac96341cu, 0x9f60cd29u, 0x36fc7695u,
                 0x7879462eu, 0x666ea36fu, 0x9a07df2fu, 0x0e0a77c1u}};
    }
    static TANDEM_HD constexpr Limbs<N> r2() {
        return {{0xae216da7u, 0x1bb8e645u, 0xe35c59e3u, 0x53fe3ab1u,
                 0x53bb8085u, 0x8c49833du, 0x7f4e44a5u, 0x0216d0b1u}};
    }
};

/// The base field of BLS12-381, 381 bits.
struct Bls12381Fp {
    static constexpr int N = 12;
    static constexpr int BITS = 381;
    static constexpr uint32_t M0 = 0xfffcfffdu;
    static constexpr uint64_t M0_64 = 0x89f3fffcfffcfffdull;
    static TANDEM_HD constexpr Limbs<N> modulus() {
        return {{0xffffaaabu, 0xb9feffffu, 0xb153ffffu, 0x1eabfffeu, 0xf6b0f624u, 0x6730d2a0u,
                 0xf38512bfu, 0x64774b84u, 0x434bacd7u, 0x4b1ba7b6u, 0x397fe69au, 0x1a0111eau}};
    }
    static TANDEM_HD constexpr Limbs<N> r() {
        return {{0x0002fffdu, 0x76090000u, 0xc40c0002u, 0xebf4000bu, 0x53c758bau, 0x5f489857u,
                 0x70525745u, 0x77ce5853u, 0xa256ec6du, 0x5c071a97u, 0xfa80e493u, 0x15f65ec3u}};
    }
    static TANDEM_HD constexpr Limbs<N> r2() {
        return {{0x1c341746u, 0xf4df1f34u, 0x09d104f1u, 0x0a76e6a6u, 0x4c95b6d5u, 0x8de5476cu,
                 0x939d83c0u, 0x67eb88a9u, 0xb519952du, 0x9a793e85u, 0x92cae3aau, 0x11988fe5u}};
    }
    static TANDEM_HD constexpr Limbs<N> fold() {
        return {{0xd202aaacu, 0xa603d203u, 0x5553ec07u, 0x582cc18eu, 0x493b9a2eu, 0x546364d0u,
                 0xe39055a1u, 0x940e1798u, 0x6ad5ebd1u, 0xeacd1294u, 0xb5be045bu, 0x1a00c3e6u}};
    }
};

/// The scalar field of BLS12-381, 255 bits.
struct Bls12381Fr {
    static constexpr int N = 8;
    static constexpr int BITS = 255;
    static constexpr uint32_t M0 = 0xffffffffu;
    static constexpr uint64_t M0_64 = 0xfffffffeffffffffull;
    static TANDEM_HD constexpr Limbs<N> modulus() {
        return {{0x00000001u, 0xffffffffu, 0xfffe5bfeu, 0x53bda402u,
                 0x09a1d805u, 0x3339d808u, 0x299d7d48u, 0x73eda753u}};
    }
    static TANDEM_HD constexpr Limbs<N> r() {
        return {{0xfffffffeu, 0x00000001u, 0x00034802u, 0x5884b7fau,
                 0xecbc4ff5u, 0x998c4fefu, 0xacc5056fu, 0x1824b159u}};
    }
    static TANDEM_HD constexpr Limbs<N> r2() {
        return {{0xf3f29c6du, 0xc999e990u, 0x87925c23u, 0x2b6cedcbu,
                 0x7254398fu, 0x05d31496u, 0x9f59ff11u, 0x0748d9d9u}};
    }
};
// clang-format on

}  // namespace tandem
