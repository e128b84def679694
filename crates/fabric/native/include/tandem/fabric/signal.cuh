#pragma once
// Data with a signal: a 64-bit word at the receiver that says that data have come.
#include "transfer.cuh"
#include "wait.cuh"

namespace tandem {
namespace fabric {

/// What is done to a signal.
enum class Signal : int32_t { set = TANDEM_AMO_SET, add = TANDEM_AMO_ADD };

namespace detail {

template <Order O> TANDEM_FABRIC_FN void raise(uint64_t* there, Signal op, uint64_t value) {
    if (op == Signal::set) {
        store<O>(there, value);
    } else {
        change<Add, O>(there, value);
    }
}

}  // namespace detail

/// Sets or adds to a signal of `pe`. Relaxed unless the template argument says release: then what the calling thread
/// did before, or saw done, is seen by who waits for the value. A release waits for the writes before it.
template <Order O = Order::relaxed>
TANDEM_FABRIC_FN void signal_op(const tandem_team& team, uint64_t* signal, Signal op, uint64_t value, uint32_t pe) {
    uint64_t* there = detail::reach(team, signal, 1, pe);
    if (there != nullptr) detail::raise<O>(there, op, value);
}

/// The value of a signal of this PE now; acquire.
TANDEM_FABRIC_FN uint64_t signal_fetch(const tandem_team&, const uint64_t* signal) {
    return detail::load<Order::acquire>(signal);
}

/// Writes `count` elements to `pe`, and then its signal: who waits for the signal reads the data. What the threads of
/// the group did before is seen too.
template <class T, class Group = Thread>
TANDEM_FABRIC_FN void put_signal(const tandem_team& team, T* to, const T* from, size_t count, uint64_t* signal,
                                 Signal op, uint64_t value, uint32_t pe, Group group = {}) {
    put(team, to, from, count, pe, group);
    // The barrier orders the writes of the group before the release of the one thread.
    group.sync();
    if (group.rank() == 0) signal_op<Order::release>(team, signal, op, value, pe);
}

/// Waits until a signal of this PE compares as wanted; acquire. `from` is the PE that is to send it, for the fault.
template <class Group = Thread> TANDEM_FABRIC_FN bool signal_wait_until(const tandem_team& team, const uint64_t* signal,
                                                                        Compare compare, uint64_t wanted,
                                                                        uint32_t from = ANY_PE, Group group = {}) {
    return wait_until(team, signal, compare, wanted, from, group);
}

/// Eight bytes that travel with their signal as one access of 16 bytes: whoever sees the signal has the value, and the
/// sender need not wait for one write before the other.
struct alignas(16) Message {
    uint64_t value;
    uint64_t signal;
};

namespace detail {

TANDEM_FABRIC_FN void store_message(Message* there, uint64_t value, uint64_t signal) {
#if defined(__CUDA_ARCH__)
    store_pair(reinterpret_cast<uint64_t*>(there), value, signal);
#else
    // The host has no such access everywhere; a release between the two has the same effect.
    store<Order::relaxed>(&there->value, value);
    store<Order::release>(&there->signal, signal);
#endif
}

TANDEM_FABRIC_FN void load_message(const Message* here, uint64_t& value, uint64_t& signal) {
#if defined(__CUDA_ARCH__)
    load_pair(reinterpret_cast<const uint64_t*>(here), value, signal);
#else
    signal = load<Order::acquire>(&here->signal);
    value = load<Order::relaxed>(&here->value);
#endif
}

}  // namespace detail

/// Sends a message. Orders nothing but its own two words: other writes need put_signal.
TANDEM_FABRIC_FN void send(const tandem_team& team, Message* to, uint64_t value, uint64_t signal, uint32_t pe) {
    Message* there = detail::reach(team, to, 1, pe);
    if (there != nullptr) detail::store_message(there, value, signal);
}

/// Waits for a message whose signal compares as wanted, and reads its value.
TANDEM_FABRIC_FN bool receive(const tandem_team& team, const Message* from_here, Compare compare, uint64_t wanted,
                              uint64_t* value, uint32_t from = ANY_PE) {
    uint64_t seen = 0;
    return detail::poll(
        team, from,
        [&] {
            detail::load_message(from_here, *value, seen);
            return detail::compares(seen, compare, wanted);
        },
        [&] {
            detail::report(team, TANDEM_FAULT_WAIT, from, reinterpret_cast<uint64_t>(&from_here->signal), seen, wanted);
        });
}

}  // namespace fabric
}  // namespace tandem
