//! Functions of NCCL that this library only hands on, whatever their types are: each is a jump to the real one, which is looked up at the first
//! call. Arguments stay where they are.

use crate::{real, INTERNAL_ERROR};
use libc::{c_char, c_void};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function and where the real one is.
#[repr(C)]
struct Slot {
    at: AtomicPtr<c_void>,
    name: *const c_char,
}

// SAFETY: the name is a constant, and the address is atomic.
unsafe impl Sync for Slot {}

extern "C" fn missing() -> i32 {
    INTERNAL_ERROR
}

/// The real function of a slot.
extern "C" fn look_up(slot: &Slot) -> *const c_void {
    // SAFETY: the name is a constant that ends with a zero byte.
    let at = real::function(unsafe { CStr::from_ptr(slot.name) });
    if at.is_null() {
        return missing as *const c_void;
    }
    slot.at.store(at.cast_mut(), Ordering::Release);
    at
}

/// Looks up the function of the slot in r11 and jumps there, with all registers that may hold arguments as they were.
#[unsafe(naked)]
unsafe extern "C" fn first_call() {
    std::arch::naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        "push r11",
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov rdi, r11",
        "call {look_up}",
        "mov [rbp - 64], rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop r11",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "pop rbp",
        "jmp r11",
        look_up = sym look_up,
    )
}

macro_rules! forward {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the real library.")]
        ///
        /// # Safety
        /// As nccl.h says.
        #[allow(non_snake_case)]
        #[no_mangle]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            static SLOT: Slot = Slot {
                at: AtomicPtr::new(std::ptr::null_mut()),
                name: concat!(stringify!($name), "\0").as_ptr().cast(),
            };
            std::arch::naked_asm!(
                "mov r11, [rip + {slot}]",
                "test r11, r11",
                "jz 2f",
                "jmp r11",
                "2: lea r11, [rip + {slot}]",
                "jmp {first_call}",
                slot = sym SLOT,
                first_call = sym first_call,
            )
        }
    )*};
}

// All that NCCL 2.20 to 2.28 exports, but for what exports.rs has.
forward! {
    ncclCommCount ncclCommCuDevice ncclCommDeregister ncclCommInitRankScalable ncclCommRegister ncclCommShrink ncclCommSplit ncclCommUserRank
    ncclCommWindowDeregister ncclCommWindowRegister ncclDevCommCreate ncclDevCommDestroy ncclGetUniqueId ncclGetVersion
    ncclGinBarrierCreateRequirement ncclLLA2ACalcSlots ncclLLA2ACreateRequirement ncclLsaBarrierCreateRequirement ncclMemAlloc ncclMemFree
    ncclRedOpCreatePreMulSum ncclRedOpDestroy ncclResetDebugInit ncclResetDebugInitInternal ncclTeamLsa ncclTeamRail ncclTeamRankToLsa
    ncclTeamRankToWorld ncclTeamWorld
    pncclAllGather pncclAllReduce pncclAlltoAll pncclBcast pncclBroadcast pncclCommAbort pncclCommCount pncclCommCuDevice pncclCommDeregister
    pncclCommDestroy pncclCommFinalize pncclCommGetAsyncError pncclCommInitAll pncclCommInitRank pncclCommInitRankConfig
    pncclCommInitRankScalable pncclCommRegister pncclCommRevoke pncclCommShrink pncclCommSplit pncclCommUserRank pncclCommWindowDeregister
    pncclCommWindowRegister pncclDevCommCreate pncclDevCommDestroy pncclGather pncclGetErrorString pncclGetLastError pncclGetUniqueId
    pncclGetVersion pncclGinBarrierCreateRequirement pncclGroupEnd pncclGroupSimulateEnd pncclGroupStart pncclLLA2ACalcSlots
    pncclLLA2ACreateRequirement pncclLsaBarrierCreateRequirement pncclMemAlloc pncclMemFree pncclRecv pncclRedOpCreatePreMulSum
    pncclRedOpDestroy pncclReduce pncclReduceScatter pncclResetDebugInit pncclScatter pncclSend pncclTeamLsa pncclTeamRail
    pncclTeamRankToLsa pncclTeamRankToWorld pncclTeamWorld
}
