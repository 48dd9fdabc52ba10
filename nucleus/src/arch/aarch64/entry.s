// System call and trap entries. Names in capitals are offsets and constants given by `entry.rs`.
//
// Registers: see crates/abi/src/registers.rs. On entry by SVC: x8 = index * 64, the user's pc, stack pointer and flags are
// in ELR_EL1, SP_EL0 and SPSR_EL1, interrupts are off. SP_EL1 is the top of the kernel stack whenever users run. All checks
// come before the first change of state. A system call destroys x6, x7 and x9 to x18: those that are used here are cleared
// on exit.
//
// Throughout: x16 = the CPU's block, x8 = the entry, x14 = its object, x15 = the activation.
//
// Other CPUs read what the fast paths change (the book, chapter CPUs, "The orders"). So the fast paths load an entry's code
// before the rest of the entry, with acquire. They store three words with release, each the first of its structure: the
// state of a called activation, the thread's top, and last the CPU's domain. A load-acquire is not done before an earlier
// store-release (Arm ARM B2.3.8, barrier-ordered-before): other CPUs see this CPU in a domain before it reads an entry.

.text
.macro ERET                         // no speculation past it (Arm ARM D1.4.4; not all CPUs have SB)
    eret
    dsb nsh
    isb
.endm
// The 16 bytes above a CPU's stack are zeros: loading them clears two registers.
.macro CLEAR first, second
    ldp \first, \second, [sp]
.endm
.macro CLEAR_SCRATCH                // the registers that a system call destroys, except x6 and x7
    CLEAR x9, x10
    CLEAR x11, x12
    CLEAR x13, x14
    CLEAR x15, x16
    CLEAR x17, x18
.endm
.macro CLEAR_PRESERVED
    CLEAR x19, x20
    CLEAR x21, x22
    CLEAR x23, x24
    CLEAR x25, x26
    CLEAR x27, x28
    CLEAR x29, x30
.endm
.macro LEAVE                        // clears all registers that a system call destroys
    CLEAR x6, x7
    CLEAR_SCRATCH
    ERET
.endm

// ---- vectors (Arm ARM D1.3.1): 16 of 128 bytes ----
.macro VECTOR
    .balign 128
.endm
.balign 2048
.globl vectors
vectors:
    // From EL1 with SP_EL0: never.
    VECTOR
    mov x0, #0
    b trap_kernel
    VECTOR
    mov x0, #INTERRUPT
    b trap_kernel
    VECTOR
    mov x0, #INTERRUPT
    b trap_kernel
    VECTOR
    mov x0, #SYSTEM_ERROR
    b trap_kernel
    // From EL1 with SP_EL1.
    VECTOR
    mrs x0, esr_el1
    ubfx x0, x0, #26, #6
    b trap_kernel
    VECTOR
    mov x0, #INTERRUPT
    b trap_kernel
    VECTOR
    mov x0, #INTERRUPT
    b trap_kernel
    VECTOR
    mov x0, #SYSTEM_ERROR
    b trap_kernel
    // From EL0 in AArch64.
    VECTOR
    stp x16, x17, [sp, #-16]        // below the stack pointer: interrupts are off, so nothing overwrites it
    // Of the exception classes that users can raise, only SVC has bit 4 set and bit 3 clear, as long as debug exceptions are
    // off (D19.2.37; `processor::load` writes MDSCR_EL1).
    mrs x16, esr_el1
    tbz w16, #26 + 4, trap_class
    tbnz w16, #26 + 3, trap_class
    mrs x16, tpidr_el1
    // LIMIT = bytes of the table - 1. If the CPU speculates past the check, the mask confines it to the domain's range.
    ldp x17, x15, [x16, #CPU_TABLE]
    cmp x8, x15
    b.hi bad_index
known_index:
    and x8, x8, #MAX_TABLE_BYTES - ENTRY_BYTES
    add x8, x8, x17
    ldar x17, [x8]                  // code
    br x17
    VECTOR
    stp x16, x17, [sp, #-16]
    mov x17, #INTERRUPT
    b trap_user
    VECTOR
    stp x16, x17, [sp, #-16]
    mov x17, #INTERRUPT
    b trap_user
    VECTOR
    stp x16, x17, [sp, #-16]        // SError: an exception of what runs here
    mrs x16, esr_el1
    b trap_class
    // From EL0 in AArch32: never.
    .rept 4
    VECTOR
    mov x0, #0
    b trap_kernel
    .endr
    VECTOR

bad_index:                          // the table may have grown since this CPU entered the domain
    lsr x15, x8, #MAX_TABLE_BITS
    cbnz x15, outside_table
    ldr x15, [x16]                  // the domain
    ldr x15, [x15, #D_TABLE + 8]    // its limit
    str x15, [x16, #CPU_LIMIT]
    dsb ish                         // later loads find the new page by their page walks
    isb
    cmp x8, x15
    b.ls known_index
    b entry_empty
outside_table:
    mov x8, #E_BAD_INDEX
    b leave_refused
.globl entry_empty, entry_revoked, entry_wrong_kind
entry_empty:
    mov x8, #E_EMPTY
    b leave_refused
entry_revoked:
    mov x8, #E_REVOKED
    b leave_refused
entry_wrong_kind:
    mov x8, #E_WRONG_KIND
    b leave_refused
no_right:
    mov x8, #E_NO_RIGHT
    b leave_refused
bad_argument:
    mov x8, #E_BAD_ARGUMENT
    b leave_refused
no_such_way:
    mov x8, #E_NO_SUCH_WAY
leave_refused:                      // all other registers still have the user's values
    CLEAR x14, x15
    CLEAR x16, x17
    ERET

// The nucleus lock: `count` is the number of CPUs that have or want it, minus one; `served` follows. See
// `nucleus_sync::lock`.
// Symbols `lock_taken_*` and `lock_given_*` enclose the code that runs with the lock: `./x bench` counts its instructions.
.macro ACQUIRE wait                 // changes x9 to x12, and what `wait` changes
    adr x9, NUCLEUS_LOCK
.Lagain_\@:
    ldaxr w10, [x9]
    add w11, w10, #1
    stxr w12, w11, [x9]
    cbnz w12, .Lagain_\@
    tbnz w10, #31, lock_taken_\@
    bl \wait
lock_taken_\@:
.endm
.macro RELEASE                      // changes x9 to x12
lock_given_\@:
    adr x9, NUCLEUS_LOCK
.Lagain_\@:
    ldxr w10, [x9]
    sub w11, w10, #1
    stlxr w12, w11, [x9]
    cbnz w12, .Lagain_\@
    tbnz w11, #31, .Lgiven_\@
    add x9, x9, #LOCK_SERVED
    ldr w10, [x9]
    add w10, w10, #1
    stlr w10, [x9]
.Lgiven_\@:
.endm
// A measuring build records the longest time for which the lock was held.
.macro MEASURE_BEGIN by             // changes x9, x10
    .if MEASURED
    mrs x10, tpidr_el1
    str \by, [x10, #CPU_ENTERED_BY]
    mrs x9, pmccntr_el0
    str x9, [x10, #CPU_ENTERED]
    .endif
.endm
.macro MEASURE_CALL                 // x8 = entry; changes x9 to x11
    .if MEASURED
    ldr x11, [x16, #CPU_TABLE]
    sub x11, x8, x11
    MEASURE_BEGIN x11
    .endif
.endm
.macro MEASURE_END                  // changes x9 to x12
    .if MEASURED
    mrs x9, pmccntr_el0
    mrs x12, tpidr_el1
    ldr x10, [x12, #CPU_ENTERED]
    cbz x10, .Lend_\@
    sub x9, x9, x10
    ldr x11, [x12, #CPU_LONGEST]
    cmp x9, x11
    b.ls .Lend_\@
    str x9, [x12, #CPU_LONGEST]
    ldr x10, [x12, #CPU_ENTERED_BY]
    str x10, [x12, #CPU_LONGEST_BY]
.Lend_\@:
    .endif
.endm
.macro MEASURE_ON                   // the same operation continues: marked by an odd number; changes x9 to x11
    .if MEASURED
    mrs x10, tpidr_el1
    ldr x11, [x10, #CPU_ENTERED_BY]
    orr x11, x11, #1
    MEASURE_BEGIN x11
    .endif
.endm
.macro SAVE_PRESERVED a
    stp x19, x20, [\a, #A_X + 8 * 19]
    stp x21, x22, [\a, #A_X + 8 * 21]
    stp x23, x24, [\a, #A_X + 8 * 23]
    stp x25, x26, [\a, #A_X + 8 * 25]
    stp x27, x28, [\a, #A_X + 8 * 27]
    stp x29, x30, [\a, #A_X + 8 * 29]
.endm
.macro LOAD_PRESERVED a
    ldp x19, x20, [\a, #A_X + 8 * 19]
    ldp x21, x22, [\a, #A_X + 8 * 21]
    ldp x23, x24, [\a, #A_X + 8 * 23]
    ldp x25, x26, [\a, #A_X + 8 * 25]
    ldp x27, x28, [\a, #A_X + 8 * 27]
    ldp x29, x30, [\a, #A_X + 8 * 29]
.endm
.macro SAVE_PLACE a                 // pc, stack pointer, thread pointer; changes x9, x10
    mrs x9, elr_el1
    mrs x10, sp_el0
    stp x9, x10, [\a, #A_PC]
    mrs x9, tpidr_el0
    str x9, [\a, #A_POINTER]
.endm
.macro LOAD_PLACE a                 // the same, and clears the flags; changes x9, x10
    ldp x9, x10, [\a, #A_PC]
    msr elr_el1, x9
    msr sp_el0, x10
    ldr x9, [\a, #A_POINTER]
    msr tpidr_el0, x9
    msr spsr_el1, xzr
.endm
.macro SAVE_LIGHT                   // sets x15 = activation; saves its place and the callee-saved registers
    ldr x15, [x16, #CPU_ACTIVATION]
    SAVE_PLACE x15
    SAVE_PRESERVED x15
.endm
.macro SAVE_WORDS                   // changes x9
    stp x0, x1, [x15, #A_X]
    stp x2, x3, [x15, #A_X + 8 * 2]
    stp x4, x5, [x15, #A_X + 8 * 4]
    ldr x9, [x16, #CPU_TABLE]
    sub x9, x8, x9
    str x9, [x15, #A_X + 8 * 8]
    mov w9, #FRAME_WORDS
    strb w9, [x15, #A_FRAME]
.endm

// ---- operations done entirely here ----
.globl op_thread_id
op_thread_id:
    ldr x17, [x16, #CPU_THREAD]
    ldrh w0, [x17, #T_NUMBER]
    mov x8, xzr
    CLEAR x14, x15
    CLEAR x16, x17
    ERET

// A semaphore entry: word 0 = 0 (P) or 1 (V). For the count see `nucleus_sync::tokens`.
.globl entry_semaphore
entry_semaphore:
    ldr x14, [x8, #E_OBJECT]
    ldrb w17, [x8, #E_RIGHTS]
    cmp x0, #1
    b.eq 2f
    b.hi no_such_way
    .if R_USE == 0
    .error "no bit"
    .endif
    tst w17, #R_USE
    b.eq no_right
    .if S_COUNT != 0
    .error "the count comes first"
    .endif
1:  ldaxr x15, [x14]
    subs x15, x15, #1
    b.mi 4f
    stxr w17, x15, [x14]
    cbnz w17, 1b
    mov x8, xzr
    CLEAR x14, x15
    CLEAR x16, x17
    ERET
2:  tst w17, #R_WRITE
    b.eq no_right
3:  ldxr x15, [x14]
    add x15, x15, #1
    stlxr w17, x15, [x14]
    cbnz w17, 3b
    cmp x15, #0
    b.le 5f
    mov x8, xzr
    CLEAR x14, x15
    CLEAR x16, x17
    ERET
4:  clrex                           // there is no token: nothing was stored
    SAVE_LIGHT
    ACQUIRE wait_to_take
    MEASURE_CALL
    strb wzr, [x15, #A_FRAME]       // light
    mov x0, x14
    bl semaphore_wait               // (semaphore, deadline, holder): returns if it does not block
    b leave_light
5:  SAVE_LIGHT
    strb wzr, [x15, #A_FRAME]       // light
    ACQUIRE wait_to_give
    MEASURE_CALL
    mov x0, x14
    bl semaphore_wake
    b leave_light

// As `entry_semaphore`, of an entry for which labels were not judged yet. Rust judges them. If the result lasts, the entry
// then gets the fast path.
.globl entry_semaphore_judged
entry_semaphore_judged:
    ldr x14, [x8, #E_OBJECT]
    SAVE_LIGHT
    SAVE_WORDS
    ACQUIRE wait_for_judged
    MEASURE_CALL
    mov x0, x15
    mov x1, x8
    bl semaphore_judged             // (activation, entry)
    b leave_light

.globl entry_port
entry_port:
    SAVE_LIGHT
    SAVE_WORDS
    ACQUIRE wait_for_port
    MEASURE_CALL
    mov x0, x15
    mov x1, x8
    bl port_entered                 // (activation, entry)
    b leave_light

// ---- waiting for the lock: x15 = activation, x8 = entry, x14 = its object. The activation first saves all that it needs to
// resume, as another CPU may change what runs here meanwhile ----
.macro WAIT_TO_REPEAT code          // restarts the system call if something changed; no `code`: portal code
    stp x8, x15, [sp, #-32]!
    stp x14, x30, [sp, #16]
    SAVE_WORDS
    ldr x9, [x15, #A_PC]
    sub x9, x9, #SYSTEM_CALL_BYTES
    str x9, [x15, #A_PC]
    mov x0, x8
    .ifb \code
    mov x1, xzr
    .else
    adr x1, \code
    .endif
    bl lock_wait_with               // (entry, its code or 0): returns if both are unchanged
    ldp x14, x30, [sp, #16]
    ldp x8, x15, [sp], #32
    mrs x16, tpidr_el1
    ldr x9, [x15, #A_PC]
    add x9, x9, #SYSTEM_CALL_BYTES
    str x9, [x15, #A_PC]
    ldp x0, x1, [x15, #A_X]
    ldp x2, x3, [x15, #A_X + 8 * 2]
    ldp x4, x5, [x15, #A_X + 8 * 4]
    ret
.endm
wait_for_light:
    WAIT_TO_REPEAT op_light
wait_for_dispatch:                  // x30 was saved before
    stp x19, x20, [x15, #A_X + 8 * 19]
    stp x21, x22, [x15, #A_X + 8 * 21]
    stp x23, x24, [x15, #A_X + 8 * 23]
    stp x25, x26, [x15, #A_X + 8 * 25]
    stp x27, x28, [x15, #A_X + 8 * 27]
    str x29, [x15, #A_X + 8 * 29]
    WAIT_TO_REPEAT op_dispatch
wait_for_full:
    WAIT_TO_REPEAT op_full
wait_for_port:
    WAIT_TO_REPEAT entry_port
wait_for_judged:
    WAIT_TO_REPEAT entry_semaphore_judged
wait_for_call:
    WAIT_TO_REPEAT
wait_for_return:
    WAIT_TO_REPEAT entry_return
wait_to_take:                       // a CPU that empties the entry meanwhile takes this: then x14 is stale, the P restarts
    str x14, [x16, #CPU_UNSETTLED]
    WAIT_TO_REPEAT entry_semaphore
wait_to_give:                       // a V, which is already counted
    str x14, [x16, #CPU_UNSETTLED]
    str xzr, [x15, #A_X + 8 * 8]
    str xzr, [x15, #A_X]
    b lock_wait_given               // does not return
.globl lock_wait
lock_wait:
    stp x29, x30, [sp, #-16]!
    bl lock_wait_here
lock_taken_after_waiting:
    ldp x29, x30, [sp], #16
    ret
wait_for_trap:                      // all registers are saved; x13, x14 are kept
    stp x13, x14, [sp, #-32]!
    str x30, [sp, #16]
    bl lock_wait_here
    ldr x30, [sp, #16]
    ldp x13, x14, [sp], #32
    ret

// Kernel operations that never restart: words 0 1 2 5 3 4 are the six arguments of a C function.
.if FRAME_LIGHT != 0
.error "a light frame is cleared"
.endif
.globl op_light
op_light:
    ldr x14, [x8, #E_OBJECT]
    SAVE_LIGHT
    ACQUIRE wait_for_light
    MEASURE_CALL
    strb wzr, [x15, #A_FRAME]       // light
    blr x14
leave_light:                        // same activation; Rust preserved the callee-saved registers
    MEASURE_END
    RELEASE
    mov x8, x0
    mov x0, x1
    mrs x16, tpidr_el1
    ldr x15, [x16, #CPU_ACTIVATION]
    ldp x9, x10, [x15, #A_PC]
    msr elr_el1, x9
    msr sp_el0, x10
    msr spsr_el1, xzr
    ldr x30, [x15, #A_X + 8 * 30]
    CLEAR x1, x2
    CLEAR x3, x4
    mov x5, xzr
    LEAVE

// As `op_light`, for DISPATCH. It returns only if it is refused, so no other register of the seat is saved.
.globl op_dispatch
op_dispatch:
    ldr x14, [x8, #E_OBJECT]
    ldr x15, [x16, #CPU_ACTIVATION]
    mrs x9, elr_el1
    mrs x10, sp_el0
    stp x9, x10, [x15, #A_PC]
    str x30, [x15, #A_X + 8 * 30]
    ACQUIRE wait_for_dispatch
    MEASURE_CALL
    blr x14
    b leave_light

// Kernel operations that may restart: all words are saved in the activation, which is the argument.
.globl op_full
op_full:
    ldr x14, [x8, #E_OBJECT]
    SAVE_LIGHT
    SAVE_WORDS
    ACQUIRE wait_for_full
    MEASURE_CALL
    mov x0, x15
    blr x14
    b leave_light

// ---- calls: the fast path is portal code (crate `portalgen`), which continues here if it cannot do the call ----
.globl portal_call_slowly, portal_call_with_control, portal_refuse_call, portal_refuse_control
portal_call_slowly:
portal_call_with_control:
    SAVE_WORDS
    ACQUIRE wait_for_call
    MEASURE_CALL
    mov x0, x15
    mov x1, x8
    bl call_slowly                  // (caller's activation, entry): does not return
    brk #0
portal_refuse_call:
    b bad_argument
portal_refuse_control:
    mov x8, #E_BAD_CONTROL
    b leave_refused

// ---- return: entry 0 of every table ----
.globl entry_return
.balign 64
entry_return:
    ldr x15, [x16, #CPU_ACTIVATION]
    ldr x14, [x15, #A_BACK]
    br x14
.globl return_any
return_any:                         // assumes nothing about the caller
    cbnz x3, return_slow
    ldr x14, [x15, #A_CALLER]
    cbz x14, return_slow            // no caller: refused there; all registers that the user keeps are intact
    ldrb w13, [x14, #A_FRAME]
    cmp w13, #FRAME_FULL
    b.ne return_slow
    cbnz x0, return_slow            // an upcall: 0 = resume where it was interrupted
    ldp x13, x18, [x16]             // domain and thread
    ldr x12, [x14, #A_DOMAIN]
    ldrb w11, [x12, #D_SLOW]
    ldrb w10, [x13, #D_SLOW]
    orr w11, w11, w10
    cbnz w11, return_slow
    ldr x11, [x16, #CPU_PER_CPU]
    ldr x10, [x13, x11]             // the pool
    str x10, [x15, #A_NEXT]
    str x15, [x13, x11]
    add x9, x12, x11                // the caller's share
    strb wzr, [x15, #A_STATE]       // free
    mov w10, #STATE_TOP
    strb w10, [x14, #A_STATE]
    str x14, [x18]
    ldp x10, x11, [x12, #D_TABLE]
    stp x14, x10, [x16, #CPU_ACTIVATION]
    str x11, [x16, #CPU_LIMIT]
    stlr x12, [x16]                 // the domain; other CPUs see the pool's change first
    ldr x10, [x9, #S_ROOT]
    msr ttbr0_el1, x10
    mov x0, x14
    b restore_full
portal_return_slowly:
portal_return_spoiled:
portal_return_with_control:
portal_return_kept:
return_slow:
    ldr x8, [x16, #CPU_TABLE]
    SAVE_LIGHT
    SAVE_WORDS
    ACQUIRE wait_for_return
    MEASURE_CALL
    mov x0, x15
    bl return_slowly                // (activation): does not return
    brk #0
portal_refuse_return:
    b bad_argument
.globl portal_return_slowly, portal_return_spoiled, portal_return_with_control, portal_return_kept, portal_refuse_return

// ---- leaving to an activation that Rust chose: x0 = activation; it is the CPU's current one ----
.macro EMPTY_STACK                  // x16 = the CPU's block; changes x9
    mrs x16, tpidr_el1
    ldr x9, [x16, #CPU_STACK]
    mov sp, x9
.endm
.globl leave_to_light, leave_to_words, leave_to_entry, leave_to_service, leave_to_full
leave_to_light:                     // status and word 0, the rest cleared
    EMPTY_STACK
    MEASURE_END
    RELEASE
    LOAD_PLACE x0
    LOAD_PRESERVED x0
    ldr x8, [x0, #A_X + 8 * 8]
    ldr x0, [x0, #A_X]
    CLEAR x1, x2
    CLEAR x3, x4
    mov x5, xzr
    LEAVE
leave_to_words:                     // status, all words, control, and in x6 the message area at a thread's start
    EMPTY_STACK
    MEASURE_END
    RELEASE
    LOAD_PLACE x0
    LOAD_PRESERVED x0
    ldr x8, [x0, #A_X + 8 * 8]
    ldp x6, x7, [x0, #A_X + 8 * 6]
    ldp x4, x5, [x0, #A_X + 8 * 4]
    ldp x2, x3, [x0, #A_X + 8 * 2]
    ldp x0, x1, [x0, #A_X]
    mov x7, xzr
    CLEAR_SCRATCH
    ERET
leave_to_entry:                     // x2 = a seat's activation, x0, x1 = words 0 and 1; word 2 = the CPU's number
    EMPTY_STACK
    MEASURE_END
    RELEASE
    ldr x9, [x2, #A_ENTRY]
    msr elr_el1, x9
    ldp x9, x6, [x2, #A_STACK]
    msr sp_el0, x9
    msr spsr_el1, xzr
    msr tpidr_el0, xzr
    ldrb w2, [x16, #CPU_NUMBER]
    CLEAR x3, x4
    CLEAR x5, x7
    mov x8, xzr
    CLEAR_SCRATCH
    CLEAR_PRESERVED
    ERET
leave_to_service:                   // a called activation: x1 = pc, x2 = badge, x3 = address of words 0 to 8, x4 = control
    mov x13, x3                     // on the stack: loaded before that is emptied
    ldp x14, x15, [x13]
    ldp x17, x18, [x13, #16]
    ldp x7, x21, [x13, #32]
    ldp x22, x23, [x13, #48]
    ldr x24, [x13, #64]
    EMPTY_STACK
    MEASURE_END
    RELEASE
    msr elr_el1, x1
    mov x8, x2
    ldp x9, x6, [x0, #A_STACK]
    msr sp_el0, x9
    msr spsr_el1, xzr
    msr tpidr_el0, xzr
    mov x0, x14
    mov x1, x15
    mov x2, x17
    mov x3, x4
    mov x4, x18
    mov x5, x7
    mov x7, xzr
    CLEAR_SCRATCH
    CLEAR x19, x20
    CLEAR x25, x26
    CLEAR x27, x28
    CLEAR x29, x30
    ERET
leave_to_full:                      // all registers
    EMPTY_STACK
    MEASURE_END
    RELEASE
restore_full:
    LOAD_PLACE x0
    ldr x9, [x0, #A_FLAGS]
    msr spsr_el1, x9
    LOAD_PRESERVED x0
    ldp x17, x18, [x0, #A_X + 8 * 17]
    ldp x15, x16, [x0, #A_X + 8 * 15]
    ldp x13, x14, [x0, #A_X + 8 * 13]
    ldp x11, x12, [x0, #A_X + 8 * 11]
    ldp x9, x10, [x0, #A_X + 8 * 9]
    ldp x7, x8, [x0, #A_X + 8 * 7]
    ldp x5, x6, [x0, #A_X + 8 * 5]
    ldp x3, x4, [x0, #A_X + 8 * 3]
    ldr x2, [x0, #A_X + 8 * 2]
    ldp x0, x1, [x0, #A_X]
    ERET

// ---- traps ----
trap_class:
    ubfx x17, x16, #26, #6
trap_user:                          // x17 = vector, x16 = syndrome of an exception; the user's own lie below the stack
    str x16, [sp, #-24]
    mrs x16, tpidr_el1
    ldr x16, [x16, #CPU_ACTIVATION]
    stp x0, x1, [x16, #A_X]
    stp x2, x3, [x16, #A_X + 8 * 2]
    stp x4, x5, [x16, #A_X + 8 * 4]
    stp x6, x7, [x16, #A_X + 8 * 6]
    stp x8, x9, [x16, #A_X + 8 * 8]
    stp x10, x11, [x16, #A_X + 8 * 10]
    stp x12, x13, [x16, #A_X + 8 * 12]
    stp x14, x15, [x16, #A_X + 8 * 14]
    ldp x0, x1, [sp, #-16]
    stp x0, x1, [x16, #A_X + 8 * 16]
    str x18, [x16, #A_X + 8 * 18]
    SAVE_PRESERVED x16
    SAVE_PLACE x16
    mrs x9, spsr_el1
    str x9, [x16, #A_FLAGS]
    mov w9, #FRAME_FULL
    strb w9, [x16, #A_FRAME]
    mov x13, x17
    ldr x14, [sp, #-24]
    mov x29, xzr
    mov x30, xzr
    ACQUIRE wait_for_trap
    MEASURE_BEGIN x13
    mov x0, x13
    mov x1, x14
    bl trap_from_user               // (vector, syndrome): does not return
    brk #0
trap_kernel:                        // x0 = vector: the idle CPU, or a preemption point; anything else is a bug
    mov x3, sp
    mrs x16, tpidr_el1
    ldr x9, [x16, #CPU_STACK]
    cmp x0, #INTERRUPT
    b.ne trap_fatal
    mov sp, x9
    mov x13, x0
    mov x14, x3
    ldrb w10, [x16, #CPU_QUIESCENT]
    cbz w10, 1f                     // this CPU has the lock
    ACQUIRE wait_for_trap
    mrs x16, tpidr_el1
    strb wzr, [x16, #CPU_QUIESCENT]
1:
lock_taken_in_a_window:
    MEASURE_BEGIN x13
    mov x0, x13
    mov x3, x14
    mov x1, xzr
    mrs x2, elr_el1
    mov x4, x29
    bl trap_from_nucleus            // (vector, syndrome, pc, sp, frame pointer): does not return
    brk #0
trap_fatal:                         // on a separate stack: the CPU's stack may be the cause
    adrp x9, fatal_stack_top
    add x9, x9, :lo12:fatal_stack_top
    mov sp, x9
    mrs x1, esr_el1
    mrs x2, elr_el1
    mov x4, x29
    bl trap_from_nucleus            // does not return
    brk #0

// A preemption point: pending interrupts are taken now, by `trap_kernel`, which does not return. This CPU keeps the lock.
.globl interrupt_window, pass_lock, go_on_with_empty_stack
go_on_with_empty_stack:
    EMPTY_STACK
    bl go_on
    brk #0
interrupt_window:
    MEASURE_END
lock_given_at_a_window:             // for the measurement: no CPU wants the lock, and this one keeps it
    msr daifclr, #2
    isb                             // pending interrupts are taken before the next instruction (Arm ARM D1.3.6)
    msr daifset, #2
lock_taken_after_a_window:
    MEASURE_ON
    ret
pass_lock:                          // to the CPUs that wait for it
    stp x29, x30, [sp, #-16]!
    MEASURE_END
    RELEASE
    ACQUIRE lock_wait
    MEASURE_ON
    ldp x29, x30, [sp], #16
    ret
// Idles: interrupts are taken by `trap_kernel`, which does not return here.
.globl idle_wait
idle_wait:
    EMPTY_STACK
    MEASURE_END
    mov w9, #1
    add x10, x16, #CPU_QUIESCENT
    stlrb w9, [x10]
    RELEASE
    msr daifclr, #2
1:  wfi
    b 1b
.section .bss
.balign 16
.skip 4096
fatal_stack_top:
.text
