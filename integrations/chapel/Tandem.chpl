/* One memory over the GPUs of a machine, or over pretend PEs: put, get, signals, waits, atomics, and an array that lies on all PEs.

   Compile with `chpl -I integrations/c/include -L target/release program.chpl integrations/chapel/Tandem.chpl`, after
   `sh scripts/fabric-c.sh library`. docs/guides/fabric-c.md says what was tested. */
module Tandem {
  private use CTypes;
  require "tandem_pgas.h", "-ltandem_fabric_c";

  private extern proc tandem_pgas_error(): c_ptrConst(c_char);
  private extern proc tandem_pgas_open(devices: c_ptrConst(c_char), timeout: uint(64), team: c_ptr(uint(64))): int(32);
  private extern proc tandem_pgas_size(team: uint(64), pes: c_ptr(uint(32))): int(32);
  private extern proc tandem_pgas_alloc(team: uint(64), bytes: uint(64), memory: c_ptr(uint(64))): int(32);
  private extern proc tandem_pgas_close(handle: uint(64)): int(32);
  private extern proc tandem_pgas_synchronize(team: uint(64)): int(32);
  private extern proc tandem_pgas_barrier(team: uint(64)): int(32);
  private extern proc tandem_pgas_write(memory: uint(64), pe: uint(32), at: uint(64), source: c_ptrConst(void),
                                        bytes: uint(64)): int(32);
  private extern proc tandem_pgas_read(memory: uint(64), pe: uint(32), at: uint(64), target: c_ptr(void),
                                       bytes: uint(64)): int(32);
  private extern proc tandem_pgas_put(pe: uint(32), peer: uint(32), target: uint(64), targetAt: uint(64), source: uint(64),
                                      sourceAt: uint(64), bytes: uint(64)): int(32);
  private extern proc tandem_pgas_get(pe: uint(32), peer: uint(32), target: uint(64), targetAt: uint(64), source: uint(64),
                                      sourceAt: uint(64), bytes: uint(64)): int(32);
  private extern proc tandem_pgas_signal(pe: uint(32), peer: uint(32), memory: uint(64), at: uint(64), operation: int(32),
                                         value: uint(64)): int(32);
  private extern proc tandem_pgas_wait(pe: uint(32), peer: uint(32), memory: uint(64), at: uint(64), compare: int(32),
                                       value: uint(64)): int(32);
  private extern proc tandem_pgas_atomic(pe: uint(32), memory: uint(64), at: uint(64), operation: int(32), operand: uint(64),
                                         expected: uint(64), before: c_ptr(uint(64))): int(32);
  private extern proc tandem_pgas_array(team: uint(64), length: uint(64), element: uint(64), block: uint(64),
                                        array: c_ptr(uint(64))): int(32);
  private extern proc tandem_pgas_array_owner(array: uint(64), index: uint(64), pe: c_ptr(uint(32)), at: c_ptr(uint(64))): int(32);
  private extern proc tandem_pgas_array_write(array: uint(64), first: uint(64), source: c_ptrConst(void), count: uint(64)): int(32);
  private extern proc tandem_pgas_array_read(array: uint(64), first: uint(64), target: c_ptr(void), count: uint(64)): int(32);

  /* What a call was refused for, or the fault of a team. */
  class TandemError: Error {
    const code: int;
    proc init(code: int, text: string) {
      super.init(text);
      this.code = code;
    }
  }

  private proc check(code: int(32)) throws {
    if code != 0 then
      throw new owned TandemError(code, try! string.createCopyingBuffer(tandem_pgas_error()));
  }

  enum Change { set = 0, add = 1, and_ = 2, or_ = 3, xor = 4, swapIf = 5, fetch = 6 }
  enum Compare { eq = 0, ne = 1, gt = 2, ge = 3, lt = 4, le = 5 }

  /* A set of PEs that share memory: "sim:4", "cuda" or "cuda:0,1". */
  class Team {
    var handle: uint(64);

    proc init(devices: string, timeoutMs: int = 0) throws {
      init this;
      check(tandem_pgas_open(devices.c_str(), timeoutMs: uint(64), c_ptrTo(handle)));
    }
    proc deinit() {
      if handle != 0 then tandem_pgas_close(handle);
    }
    proc size: int throws {
      var pes: uint(32);
      check(tandem_pgas_size(handle, c_ptrTo(pes)));
      return pes: int;
    }
    proc barrier() throws do check(tandem_pgas_barrier(handle));
    proc synchronize() throws do check(tandem_pgas_synchronize(handle));
  }

  /* `length` elements on every PE, at one offset. */
  class Symmetric {
    type eltType;
    const length: int;
    var handle: uint(64);

    proc init(type eltType, team: borrowed Team, length: int) throws {
      this.eltType = eltType;
      this.length = length;
      init this;
      check(tandem_pgas_alloc(team.handle, bytes(length), c_ptrTo(handle)));
    }
    proc deinit() {
      if handle != 0 then tandem_pgas_close(handle);
    }
    proc bytes(elements: int): uint(64) do return (elements * c_sizeof(eltType): int): uint(64);

    /* The host's copies. */
    proc write(pe: int, at: int, const ref source: [] eltType) throws {
      if source.size > 0 then
        check(tandem_pgas_write(handle, pe: uint(32), bytes(at), c_ptrToConst(source[source.domain.low]), bytes(source.size)));
    }
    proc read(pe: int, at: int, ref target: [] eltType) throws {
      if target.size > 0 then
        check(tandem_pgas_read(handle, pe: uint(32), bytes(at), c_ptrTo(target[target.domain.low]), bytes(target.size)));
    }
    /* Tells the queue of `pe` to copy its own elements of `source` to `peer`'s of this memory. */
    proc put(pe: int, peer: int, at: int, source: borrowed Symmetric(eltType), sourceAt: int, count: int) throws do
      check(tandem_pgas_put(pe: uint(32), peer: uint(32), handle, bytes(at), source.handle, bytes(sourceAt), bytes(count)));
    /* Tells it to copy `peer`'s elements of `source` to its own of this memory. */
    proc get(pe: int, peer: int, at: int, source: borrowed Symmetric(eltType), sourceAt: int, count: int) throws do
      check(tandem_pgas_get(pe: uint(32), peer: uint(32), handle, bytes(at), source.handle, bytes(sourceAt), bytes(count)));
    /* Signals, waits and atomics are of words of 64 bits. */
    proc signal(pe: int, peer: int, at: int, change: Change, value: uint(64)) throws do
      check(tandem_pgas_signal(pe: uint(32), peer: uint(32), handle, bytes(at), change: int(32), value));
    proc wait(pe: int, peer: int, at: int, compare: Compare, value: uint(64)) throws do
      check(tandem_pgas_wait(pe: uint(32), peer: uint(32), handle, bytes(at), compare: int(32), value));
    proc change(pe: int, at: int, change: Change, operand: uint(64) = 0, expected: uint(64) = 0): uint(64) throws {
      var before: uint(64);
      check(tandem_pgas_atomic(pe: uint(32), handle, bytes(at), change: int(32), operand, expected, c_ptrTo(before)));
      return before;
    }
  }

  /* Elements that lie on all PEs: runs of `block`, dealt in turn; 0 is one run for each. */
  class GlobalArray {
    type eltType;
    const length: int;
    var handle: uint(64);

    proc init(type eltType, team: borrowed Team, length: int, block: int = 0) throws {
      this.eltType = eltType;
      this.length = length;
      init this;
      const element = c_sizeof(eltType): uint(64);
      check(tandem_pgas_array(team.handle, length: uint(64), element, block: uint(64), c_ptrTo(handle)));
    }
    proc deinit() {
      if handle != 0 then tandem_pgas_close(handle);
    }
    proc write(first: int, const ref source: [] eltType) throws {
      if source.size > 0 then
        check(tandem_pgas_array_write(handle, first: uint(64), c_ptrToConst(source[source.domain.low]), source.size: uint(64)));
    }
    proc read(first: int, ref target: [] eltType) throws {
      if target.size > 0 then
        check(tandem_pgas_array_read(handle, first: uint(64), c_ptrTo(target[target.domain.low]), target.size: uint(64)));
    }
    /* The PE that has an element. */
    proc owner(index: int): int throws {
      var pe: uint(32), at: uint(64);
      check(tandem_pgas_array_owner(handle, index: uint(64), c_ptrTo(pe), c_ptrTo(at)));
      return pe: int;
    }
  }
}
