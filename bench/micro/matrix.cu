// A full matrix of Poseidon, 12 x 12 over the scalar field of BN254, times states: by wide multiplications, as the program does
// it, and by INT8 tensor cores (wgmma, so sm_90a), whose results are checked against products and additions of the field.
#include "common.cuh"
#include "tandem/poseidon.cuh"

using P = Bn254Fr;
using F = Fp<P>;

constexpr int T = 12;
constexpr int THREADS = 128;

extern __shared__ uint4 shared[];

// ---- wide multiplications: a state a thread, in shared memory

struct Slots {
    __device__ F get(uint32_t i) const {
        F x;
        reinterpret_cast<uint4*>(&x)[0] = shared[2 * i * THREADS + threadIdx.x];
        reinterpret_cast<uint4*>(&x)[1] = shared[(2 * i + 1) * THREADS + threadIdx.x];
        return x;
    }
    __device__ void set(uint32_t i, F x) const {
        shared[2 * i * THREADS + threadIdx.x] = reinterpret_cast<const uint4*>(&x)[0];
        shared[(2 * i + 1) * THREADS + threadIdx.x] = reinterpret_cast<const uint4*>(&x)[1];
    }
};

/// `factors` are the triangles of the matrix.
__global__ void __launch_bounds__(THREADS, 4) by_wide_products(const F* factors, F* states, int times) {
    const Slots slots;
    F* mine = states + (size_t(blockIdx.x) * THREADS + threadIdx.x) * T;
    for (int i = 0; i < T; i++) slots.set(i, load16(mine + i));
#pragma unroll 1
    for (int r = 0; r < times; r++) poseidon::multiply<P>(factors, nullptr, slots, T);
    for (int i = 0; i < T; i++) store16(mine + i, slots.get(i));
}

/// One cell a thread, by the definition.
__global__ void define(const F* matrix, const F* in, F* out) {
    const int cell = blockIdx.x * blockDim.x + threadIdx.x, i = cell % T;
    F sum = F::zero();
    for (int j = 0; j < T; j++) sum = sum + matrix[i * T + j] * in[cell - i + j];
    out[cell] = sum;
}

// ---- tensor cores: a warpgroup holds 64 states as bytes in registers (operand A); the bytes of an entry of the matrix, shifted,
// are operand B in shared memory: B[n][k] = byte n - k. A cell of the result is 64 columns, sums of products of bytes below 2^25.

/// Warpgroups of a block. They share operand B.
constexpr int GROUPS = 3;
constexpr int STATES = 64 * GROUPS;
/// Bytes of operand B for one entry, and for two rows of the matrix, which are worked on at a time.
constexpr int ENTRY = 2048, STAGE = 2 * T * ENTRY;
/// Words from one state to the next in shared memory: no two of eight rows share a bank.
constexpr int PITCH = 8 * T + 4;
constexpr int BYTES = 2 * STAGE + STATES * PITCH * 4;

__device__ __forceinline__ void wgmma(int (&d)[32], const uint32_t (&a)[4], uint64_t desc, int accumulate) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.u8 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, {%32,%33,%34,%35}, %36, p;}\n"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]), "+r"(d[8]),
          "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]), "+r"(d[16]),
          "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]),
          "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(desc), "r"(accumulate));
}

/// Operand B in core matrices of 8 x 16 bytes: 128 bytes from one to the next along n, 1024 along k.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
    return uint64_t((address & 0x3ffff) >> 4) | uint64_t(1024 >> 4) << 16 | uint64_t(128 >> 4) << 32;
}

/// w = the sum of (c0_j + 2^8 c1_j) 2^(64 j), shifted up by 0 or 16 bits: the columns of a row that one thread of four holds.
__device__ __forceinline__ void to_words(uint32_t (&w)[17], const int (&d)[32], int row, uint32_t shift) {
    uint32_t t[16];
#pragma unroll
    for (int j = 0; j < 8; j++) {
        uint32_t c0 = d[4 * j + 2 * row], c1 = d[4 * j + 2 * row + 1];
        t[2 * j] = ptx::add_cc(c0, c1 << 8);
        t[2 * j + 1] = ptx::addc(c1 >> 24, 0);
    }
    w[0] = t[0] << shift;
#pragma unroll
    for (int i = 1; i < 16; i++) w[i] = __funnelshift_l(t[i - 1], t[i], shift);
    w[16] = __funnelshift_l(t[15], 0, shift);
}

__device__ __forceinline__ void add17(uint32_t (&a)[17], const uint32_t (&b)[17]) {
    a[0] = ptx::add_cc(a[0], b[0]);
#pragma unroll
    for (int i = 1; i < 16; i++) a[i] = ptx::addc_cc(a[i], b[i]);
    a[16] = ptx::addc(a[16], b[16]);
}

/// Without RECOMBINE, the sums alone, for their time.
template <bool RECOMBINE>
__global__ void __launch_bounds__(128 * GROUPS, 1) by_tensor_cores(const uint4* bytes, F* states, int times) {
    uint4* stage = shared;
    uint32_t* cells = (uint32_t*)((char*)shared + 2 * STAGE);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
    const int first = warp * 16;
    F* mine = states + size_t(blockIdx.x) * STATES * T;
    for (int i = threadIdx.x; i < STATES * 8 * T; i += blockDim.x)
        cells[i / (8 * T) * PITCH + i % (8 * T)] = ((uint32_t*)mine)[i];
    auto fetch = [&](int pair, int to) {
        const char* from = (const char*)bytes + size_t(pair) * STAGE;
        uint32_t base = uint32_t(__cvta_generic_to_shared((char*)stage + to * STAGE));
        for (int i = threadIdx.x; i < STAGE / 16; i += blockDim.x)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(base + 16 * i), "l"(from + 16 * i));
        asm volatile("cp.async.commit_group;");
    };
    fetch(0, 0);
    __syncthreads();
#pragma unroll 1
    for (int r = 0; r < times; r++) {
        uint32_t a[T][4];
#pragma unroll
        for (int j = 0; j < T; j++) {
            a[j][0] = cells[(first + g) * PITCH + 8 * j + q];
            a[j][1] = cells[(first + g + 8) * PITCH + 8 * j + q];
            a[j][2] = cells[(first + g) * PITCH + 8 * j + 4 + q];
            a[j][3] = cells[(first + g + 8) * PITCH + 8 * j + 4 + q];
        }
        __syncwarp();
#pragma unroll 1
        for (int pair = 0; pair < T / 2; pair++) {
            asm volatile("cp.async.wait_group 0;");
            asm volatile("fence.proxy.async.shared::cta;");
            __syncthreads();
            const int now = pair & 1;
            if (pair + 1 < T / 2 || r + 1 < times) fetch((pair + 1) % (T / 2), now ^ 1);
            uint32_t base = uint32_t(__cvta_generic_to_shared((char*)stage + now * STAGE));
            int d0[32], d1[32];
#pragma unroll
            for (int i = 0; i < 32; i++) d0[i] = d1[i] = 0;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int j = 0; j < T; j++) wgmma(d0, a[j], descriptor(base + j * ENTRY), 1);
#pragma unroll
            for (int j = 0; j < T; j++) wgmma(d1, a[j], descriptor(base + T * ENTRY + j * ENTRY), 1);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
            for (int i = 0; i < 32; i++) asm volatile("" : "+r"(d0[i]), "+r"(d1[i])::"memory");
            if (!RECOMBINE) {
                uint32_t x = 0;
#pragma unroll
                for (int i = 0; i < 32; i++) x ^= d0[i] ^ d1[i];
                if (x == 0x12345678) cells[threadIdx.x] = x;
                continue;
            }
            const uint32_t shift = 16 * (q & 1);
            // Combination 2 * cell + row goes to the thread of that number: first the row, to threads of equal parity ...
            uint32_t keep0[17], keep1[17];
            auto exchange = [&](uint32_t (&keep)[17], const int (&d)[32]) {
                uint32_t even[17], odd[17], got[17];
                to_words(even, d, 0, shift);
                to_words(odd, d, 1, shift);
#pragma unroll
                for (int i = 0; i < 17; i++) {
                    uint32_t give = q & 1 ? even[i] : odd[i];
                    keep[i] = q & 1 ? odd[i] : even[i];
                    got[i] = __shfl_xor_sync(0xffffffff, give, 1);
                }
                add17(keep, got);
            };
            exchange(keep0, d0);
            exchange(keep1, d1);
            // ... then the cell. Sums of the threads 2 and 3 stand one word higher.
            uint32_t low[17], high[17];
#pragma unroll
            for (int i = 0; i < 17; i++) {
                uint32_t give = q & 2 ? keep0[i] : keep1[i], own = q & 2 ? keep1[i] : keep0[i];
                uint32_t got = __shfl_xor_sync(0xffffffff, give, 2);
                low[i] = q & 2 ? got : own;
                high[i] = q & 2 ? own : got;
            }
            Wide<P> sum;
            sum.limb[0] = low[0];
            sum.limb[1] = ptx::add_cc(low[1], high[0]);
#pragma unroll
            for (int i = 2; i < 15; i++) sum.limb[i] = ptx::addc_cc(low[i], high[i - 1]);
            sum.limb[15] = ptx::addc(low[15], high[14]);
            limbs::reduce_once<P>(sum.limb + 8);
            limbs::reduce_once<P>(sum.limb + 8);
            F y = sum.reduce();
            const int row = first + g + 8 * (q & 1), cell = 2 * pair + (q >> 1);
            uint4* to = (uint4*)(cells + row * PITCH + 8 * cell);
            to[0] = ((uint4*)&y)[0];
            to[1] = ((uint4*)&y)[1];
        }
        __syncwarp();
    }
    __syncthreads();
    for (int i = threadIdx.x; i < STATES * 8 * T; i += blockDim.x)
        ((uint32_t*)mine)[i] = cells[i / (8 * T) * PITCH + i % (8 * T)];
}

int main() {
    constexpr int COUNT = STATES * 132 * 8, TIMES = 24;
    static_assert(COUNT % THREADS == 0, "whole blocks");
    std::vector<F> matrix(T * T), states(size_t(COUNT) * T);
    fill_random<P>(matrix);
    fill_random<P>(states);
    // One row and one state of largest elements.
    F largest;
    for (int k = 0; k < 8; k++) largest.limb[k] = P::modulus().limb[k] - (k == 0);
    std::fill_n(matrix.begin() + 5 * T, T, largest);
    std::fill_n(states.begin(), T, largest);
    std::vector<uint8_t> operand(size_t(T) * T * ENTRY);
    for (int entry = 0; entry < T * T; entry++) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(&matrix[entry]);
        for (int k = 0; k < 32; k++) {
            for (int n = k; n < k + 32; n++) {
                operand[size_t(entry) * ENTRY + k / 16 * 1024 + n / 8 * 128 + n % 8 * 16 + k % 16] = bytes[n - k];
            }
        }
    }

    const size_t size = states.size() * sizeof(F);
    DeviceArray<F> factors(T * T), given(states.size()), once(states.size()), twice(states.size());
    DeviceArray<uint4> operand_b(operand.size() / sizeof(uint4));
    CHECK(cudaMemcpy(factors.data, matrix.data(), sizeof(F) * T * T, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(operand_b.data, operand.data(), operand.size(), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(given.data, states.data(), size, cudaMemcpyHostToDevice));
    CHECK(cudaFuncSetAttribute(by_tensor_cores<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
    CHECK(cudaFuncSetAttribute(by_tensor_cores<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, BYTES));
    CHECK(cudaFuncSetAttribute(by_wide_products, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               T * THREADS * int(sizeof(F))));

    auto wide = [&](int times) {
        by_wide_products<<<COUNT / THREADS, THREADS, T * THREADS * sizeof(F)>>>(factors.data, given.data, times);
    };
    auto tensor = [&](int times) {
        by_tensor_cores<true><<<COUNT / STATES, 128 * GROUPS, BYTES>>>(operand_b.data, given.data, times);
    };
    auto sums = [&](int times) {
        by_tensor_cores<false><<<COUNT / STATES, 128 * GROUPS, BYTES>>>(operand_b.data, given.data, times);
    };

    // The matrix twice in a row.
    define<<<COUNT * T / THREADS, THREADS>>>(factors.data, given.data, once.data);
    define<<<COUNT * T / THREADS, THREADS>>>(factors.data, once.data, twice.data);
    tensor(2);
    CHECK(cudaDeviceSynchronize());
    std::vector<F> expected(states.size());
    CHECK(cudaMemcpy(expected.data(), twice.data, size, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(states.data(), given.data, size, cudaMemcpyDeviceToHost));
    size_t wrong = 0;
    for (size_t i = 0; i < states.size(); i++) wrong += states[i] != expected[i];
    printf("tensor cores: %zu of %zu cells wrong\n", wrong, states.size());

    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    auto time = [&](const char* name, auto launch) {
        float best = 1e9f;
        for (int run = 0; run < 4; run++) {
            float ms;
            CHECK(cudaEventRecord(begin));
            launch(TIMES);
            CHECK(cudaEventRecord(end));
            CHECK(cudaEventSynchronize(end));
            CHECK(cudaGetLastError());
            CHECK(cudaEventElapsedTime(&ms, begin, end));
            best = std::min(best, ms);
        }
        printf("%-24s %7.1f ps a matrix\n", name, best * 1e9 / COUNT / TIMES);
    };
    time("wide multiplications", wide);
    time("tensor cores", tensor);
    time("  their sums alone", sums);
    return wrong != 0;
}
