# System call and trap entries. Names in capitals are offsets and constants given by `entry.rs`.
#
# Registers: see crates/abi/src/registers.rs. On entry by SYSCALL: rax = index * 64, rcx = user pc,
# r11 = user flags, interrupts off, rsp still the user's: nothing is pushed before a kernel stack is loaded.
# All checks come before the first change of state.

.text
# LIMIT = bytes of the table - 1. If the CPU speculates past the check, the mask confines it to the domain's range.
.globl system_call_entry
.balign 64
system_call_entry:
    swapgs
    cmp rax, gs:[CPU_LIMIT]
    ja bad_index
known_index:
    and eax, MAX_TABLE_BYTES - ENTRY_BYTES
    add rax, gs:[CPU_TABLE]
    jmp qword ptr [rax]

bad_index:                          # the table may have grown since this CPU entered the domain
    cmp rax, MAX_TABLE_BYTES
    jae outside_table
    mov gs:[CPU_SCRATCH], rax
    mov rax, gs:[CPU_DOMAIN]
    mov rax, [rax + D_LIMIT]
    mov gs:[CPU_LIMIT], rax
    mov rax, gs:[CPU_SCRATCH]
    cmp rax, gs:[CPU_LIMIT]
    jbe known_index
    jmp entry_empty
outside_table:
    mov eax, E_BAD_INDEX
    jmp leave_refused
.globl entry_empty, entry_revoked, entry_wrong_kind
entry_empty:
    mov eax, E_EMPTY
    jmp leave_refused
entry_revoked:
    mov eax, E_REVOKED
    jmp leave_refused
entry_wrong_kind:
    mov eax, E_WRONG_KIND
    jmp leave_refused
no_right:
    mov eax, E_NO_RIGHT
    jmp leave_refused
bad_argument:
    mov eax, E_BAD_ARGUMENT
    jmp leave_refused
no_such_way:
    mov eax, E_NO_SUCH_WAY
leave_refused:                      # all other registers still have the user's values
    swapgs
    sysretq

# The nucleus lock: `count` is the number of CPUs that have or want it, minus one; `served` follows. See
# `nucleus_sync::lock`.
# Symbols `lock_taken_*` and `lock_given_*` enclose the code that runs with the lock: `./x bench` counts its instructions.
.macro ACQUIRE wait                 # the kernel stack is loaded; changes flags, and what `wait` changes
    lock inc dword ptr [rip + NUCLEUS_LOCK]
    jz lock_taken_\@
    call \wait
lock_taken_\@:
.endm
.macro RELEASE                      # changes flags
lock_given_\@:
    lock dec dword ptr [rip + NUCLEUS_LOCK]
    js 9f
    inc dword ptr [rip + NUCLEUS_LOCK + LOCK_SERVED]
9:
.endm
# A measuring build records the longest time for which the lock was held.
.macro MEASURE_BEGIN by             # changes only flags
    .if MEASURED
    mov gs:[CPU_SCRATCH], rax
    mov gs:[CPU_ENTERED_BY], \by
    mov gs:[CPU_ENTERED], rdx
    rdtsc
    shl rdx, 32
    or rax, rdx
    mov rdx, gs:[CPU_ENTERED]
    mov gs:[CPU_ENTERED], rax
    mov rax, gs:[CPU_SCRATCH]
    .endif
.endm
.macro MEASURE_CALL                 # rax = entry; on the kernel stack
    .if MEASURED
    push r11
    mov r11, rax
    sub r11, gs:[CPU_TABLE]
    MEASURE_BEGIN r11
    pop r11
    .endif
.endm
.macro MEASURE_END                  # changes rax, rcx, rdx
    .if MEASURED
    rdtsc
    shl rdx, 32
    or rax, rdx
    mov rcx, gs:[CPU_ENTERED]
    sub rax, rcx
    test rcx, rcx
    jz 9f
    cmp rax, gs:[CPU_LONGEST]
    jbe 9f
    mov gs:[CPU_LONGEST], rax
    mov rcx, gs:[CPU_ENTERED_BY]
    mov gs:[CPU_LONGEST_BY], rcx
9:
    .endif
.endm
.macro SAVE_PRESERVED a
    mov [\a + A_RBX], rbx
    mov [\a + A_RBP], rbp
    mov [\a + A_R12], r12
    mov [\a + A_R13], r13
    mov [\a + A_R14], r14
    mov [\a + A_R15], r15
.endm
.macro SAVE_LIGHT                   # sets r11 = activation; saves pc, stack pointer and callee-saved registers
    mov r11, gs:[CPU_ACTIVATION]
    mov [r11 + A_RIP], rcx
    mov [r11 + A_RSP], rsp
    SAVE_PRESERVED r11
.endm
.macro SAVE_WORDS                   # r11 = activation, rax = entry
    mov [r11 + A_RDI], rdi
    mov [r11 + A_RSI], rsi
    mov [r11 + A_RDX], rdx
    mov [r11 + A_R8], r8
    mov [r11 + A_R9], r9
    mov [r11 + A_R10], r10
    mov rcx, rax
    sub rcx, gs:[CPU_TABLE]
    mov [r11 + A_RAX], rcx
    mov byte ptr [r11 + A_FRAME], FRAME_WORDS
.endm
.macro LOAD_PRESERVED a
    mov rbx, [\a + A_RBX]
    mov rbp, [\a + A_RBP]
    mov r12, [\a + A_R12]
    mov r13, [\a + A_R13]
    mov r14, [\a + A_R14]
    mov r15, [\a + A_R15]
.endm
.macro LEAVE
    mov r11d, 0x202
    swapgs
    sysretq
.endm

# ---- operations done entirely here ----
.globl op_thread_id
op_thread_id:
    mov rdi, gs:[CPU_THREAD]
    movzx edi, word ptr [rdi + T_NUMBER]
    xor eax, eax
    swapgs
    sysretq

# A semaphore entry: word 0 = 0 (P) or 1 (V). For the count see `nucleus_sync::tokens`.
.globl entry_semaphore
entry_semaphore:
    mov gs:[CPU_ENTRY], rax
    cmp rdi, 1
    je 1f
    ja 4f
    test byte ptr [rax + E_RIGHTS], R_USE
    jz no_right
    mov rax, [rax + E_OBJECT]
    lock sub qword ptr [rax + S_COUNT], 1
    js 2f
    xor eax, eax
    swapgs
    sysretq
1:  test byte ptr [rax + E_RIGHTS], R_WRITE
    jz no_right
    mov rax, [rax + E_OBJECT]
    lock add qword ptr [rax + S_COUNT], 1
    jle 3f
    xor eax, eax
    swapgs
    sysretq
2:  lock add qword ptr [rax + S_COUNT], 1   # there was no token: takes the subtraction back
    SAVE_LIGHT
    mov rsp, gs:[CPU_STACK]
    mov r8, rax
    mov rax, gs:[CPU_ENTRY]
    ACQUIRE wait_to_take
    MEASURE_CALL
    mov byte ptr [r11 + A_FRAME], FRAME_LIGHT
    mov rdi, [rax + E_OBJECT]
    call semaphore_wait             # (semaphore, deadline, holder): returns if it does not block
    jmp leave_light
3:  SAVE_LIGHT
    mov rsp, gs:[CPU_STACK]
    mov r8, rax
    mov rax, gs:[CPU_ENTRY]
    mov byte ptr [r11 + A_FRAME], FRAME_LIGHT
    ACQUIRE wait_to_give
    MEASURE_CALL
    mov rdi, r8
    call semaphore_wake
    jmp leave_light
4:  jmp no_such_way

# As `entry_semaphore`, of an entry for which labels were not judged yet. Rust judges them. If the result lasts, the entry
# then gets the fast path.
.globl entry_semaphore_judged
entry_semaphore_judged:
    SAVE_LIGHT
    SAVE_WORDS
    mov rsp, gs:[CPU_STACK]
    ACQUIRE wait_for_judged
    MEASURE_CALL
    mov rdi, r11
    mov rsi, rax
    call semaphore_judged           # (activation, entry)
    jmp leave_light

.globl entry_port
entry_port:
    SAVE_LIGHT
    SAVE_WORDS
    mov rsp, gs:[CPU_STACK]
    ACQUIRE wait_for_port
    MEASURE_CALL
    mov rdi, r11
    mov rsi, rax
    call port_entered               # (activation, entry)
    jmp leave_light

# ---- waiting for the lock: r11 = activation, rax = entry, r8 = semaphore if any. The activation first saves all that it
# needs to resume, as another CPU may change what runs here meanwhile ----
.macro WAIT_TO_REPEAT code          # restarts the system call if something changed; no `code`: portal code
    push rax
    push r11
    SAVE_WORDS
    sub qword ptr [r11 + A_RIP], SYSTEM_CALL_BYTES
    .ifb \code
    xor esi, esi
    .else
    lea rsi, [rip + \code]
    .endif
    mov rdi, rax
    sub rsp, 8
    call lock_wait_with             # (entry, its code or 0): returns if both are unchanged
    add rsp, 8
    pop r11
    pop rax
    add qword ptr [r11 + A_RIP], SYSTEM_CALL_BYTES
    mov rdi, [r11 + A_RDI]
    mov rsi, [r11 + A_RSI]
    mov rdx, [r11 + A_RDX]
    mov r8, [r11 + A_R8]
    mov r9, [r11 + A_R9]
    mov r10, [r11 + A_R10]
    ret
.endm
wait_for_light:
    WAIT_TO_REPEAT op_light
wait_for_dispatch:
    SAVE_PRESERVED r11
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
wait_to_take:                       # a P, which may have hidden a token from others
    mov gs:[CPU_UNSETTLED], r8
    xor r8d, r8d
    WAIT_TO_REPEAT entry_semaphore
wait_to_give:                       # a V, which is already counted
    mov gs:[CPU_UNSETTLED], r8
    mov qword ptr [r11 + A_RAX], 0
    mov qword ptr [r11 + A_RDI], 0
    jmp lock_wait_given             # does not return
.globl lock_wait
lock_wait:
    call lock_wait_here
lock_taken_after_waiting:
    ret
wait_for_trap:                      # all registers are saved
    push rdi
    push rsi
    call lock_wait
    pop rsi
    pop rdi
    ret

# Kernel operations that never restart: words 0 1 2 5 3 4 are the six arguments of a C function.
.globl op_light
op_light:
    SAVE_LIGHT
    mov rsp, gs:[CPU_STACK]
    ACQUIRE wait_for_light
    MEASURE_CALL
    mov byte ptr [r11 + A_FRAME], FRAME_LIGHT
    mov rcx, r10
    call qword ptr [rax + E_OBJECT]
leave_light:                        # same activation; Rust preserved the callee-saved registers
    .if MEASURED
    mov r8, rax
    mov r9, rdx
    MEASURE_END
    mov rax, r8
    mov rdx, r9
    .endif
    RELEASE
    mov r11, gs:[CPU_ACTIVATION]
    mov rcx, [r11 + A_RIP]
    mov rsp, [r11 + A_RSP]
    mov rdi, rdx
    xor esi, esi
    xor edx, edx
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    LEAVE

# As `op_light`, for DISPATCH. It returns only if it is refused, so no other register of the seat is saved.
.globl op_dispatch
op_dispatch:
    mov r11, gs:[CPU_ACTIVATION]
    mov [r11 + A_RIP], rcx
    mov [r11 + A_RSP], rsp
    mov rsp, gs:[CPU_STACK]
    ACQUIRE wait_for_dispatch
    MEASURE_CALL
    call qword ptr [rax + E_OBJECT]
    jmp leave_light

# Kernel operations that may restart: all words are saved in the activation, which is the argument.
.globl op_full
op_full:
    SAVE_LIGHT
    SAVE_WORDS
    mov rsp, gs:[CPU_STACK]
    ACQUIRE wait_for_full
    MEASURE_CALL
    mov rdi, r11
    call qword ptr [rax + E_OBJECT]
    jmp leave_light

# ---- calls: the fast path is portal code (crate `portalgen`), which continues here if it cannot do the call ----
.globl portal_call_slowly, portal_call_with_control, portal_refuse_call, portal_refuse_control
portal_call_slowly:                 # no control word: clears what portal code left in r10
    xor r10d, r10d
portal_call_with_control:
    SAVE_WORDS
    mov rsp, gs:[CPU_STACK]
    ACQUIRE wait_for_call
    MEASURE_CALL
    mov rdi, r11
    mov rsi, rax
    call call_slowly                # (caller's activation, entry): does not return
    ud2
portal_refuse_call:
    jmp bad_argument
portal_refuse_control:
    mov eax, E_BAD_CONTROL
    jmp leave_refused

# ---- return: entry 0 of every table ----
.globl entry_return
.balign 64
entry_return:
    mov r11, gs:[CPU_ACTIVATION]
    jmp qword ptr [r11 + A_BACK]
.globl return_any
return_any:                         # assumes nothing about the caller
    test r10, r10
    jnz return_slow
    mov rax, [r11 + A_CALLER]
    test rax, rax
    jz return_slow                  # no caller: refused there; all registers that the user keeps are intact
    cmp byte ptr [rax + A_FRAME], FRAME_FULL
    jne return_slow
    test rdi, rdi                   # an upcall: 0 = resume where it was interrupted
    jnz return_slow
    mov rbp, gs:[CPU_DOMAIN]
    mov rbx, [rax + A_DOMAIN]
    movzx r15d, byte ptr [rbx + D_SLOW]     # rcx still holds the user's pc
    or r15b, [rbp + D_SLOW]
    jnz return_spoiled
    mov r15, gs:[CPU_PER_CPU]
    mov r12, [rbp + r15 + S_POOL]
    mov [r11 + A_NEXT], r12
    mov [rbp + r15 + S_POOL], r11
    mov byte ptr [r11 + A_STATE], STATE_FREE
    mov byte ptr [rax + A_STATE], STATE_TOP
    mov rcx, gs:[CPU_THREAD]
    mov [rcx + T_TOP], rax
    mov gs:[CPU_ACTIVATION], rax
    mov gs:[CPU_DOMAIN], rbx
    mov rcx, [rbx + D_TABLE]
    mov gs:[CPU_TABLE], rcx
    mov rcx, [rbx + D_LIMIT]
    mov gs:[CPU_LIMIT], rcx
    mov rcx, [rbx + r15 + S_ROOT]
    mov cr3, rcx
    mov rdi, rax
    jmp restore_full
portal_return_with_control:
return_spoiled:                     # these registers were overwritten: the callee does not need them, but must not see these
    xor ebx, ebx
    xor ebp, ebp
    xor r15d, r15d
    jmp return_slow
portal_return_spoiled:
    xor ebx, ebx
    xor ebp, ebp
    xor r10d, r10d
portal_return_slowly:
return_slow:
    mov rax, gs:[CPU_TABLE]
    SAVE_LIGHT
    SAVE_WORDS
    mov rsp, gs:[CPU_STACK]
    ACQUIRE wait_for_return
    MEASURE_CALL
    mov rdi, r11
    call return_slowly              # (activation): does not return
    ud2
portal_return_kept:
    mov rbx, [r11 + A_RBX]
    mov rbp, [r11 + A_RBP]
    xor r10d, r10d
    jmp return_slow
portal_refuse_return:
    mov r11d, 0x202
    jmp bad_argument
.globl portal_return_slowly, portal_return_spoiled, portal_return_with_control, portal_return_kept, portal_refuse_return

# ---- leaving to an activation that Rust chose: rdi = activation; it is the CPU's current one ----
.globl leave_to_light, leave_to_words, leave_to_entry, leave_to_service, leave_to_full
leave_to_light:                     # status and word 0, the rest cleared
    MEASURE_END
    RELEASE
    mov rax, [rdi + A_RAX]
    mov rcx, [rdi + A_RIP]
    mov rsp, [rdi + A_RSP]
    LOAD_PRESERVED rdi
    mov rdi, [rdi + A_RDI]
    xor esi, esi
    xor edx, edx
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    LEAVE
leave_to_words:                     # status, all words, control
    MEASURE_END
    RELEASE
    mov rax, [rdi + A_RAX]
    mov rcx, [rdi + A_RIP]
    mov rsp, [rdi + A_RSP]
    LOAD_PRESERVED rdi
    mov rsi, [rdi + A_RSI]
    mov rdx, [rdi + A_RDX]
    mov r8, [rdi + A_R8]
    mov r9, [rdi + A_R9]
    mov r10, [rdi + A_R10]
    mov rdi, [rdi + A_RDI]
    LEAVE
leave_to_entry:                     # rdx = a seat's activation, rdi, rsi = words 0 and 1; word 2 = the CPU's number
    .if MEASURED
    mov r8, rdx
    MEASURE_END
    mov rdx, r8
    .endif
    RELEASE
    mov rcx, [rdx + A_ENTRY]
    mov rsp, [rdx + A_STACK]
    mov rbx, [rdx + A_MESSAGE]
    movzx edx, byte ptr gs:[CPU_NUMBER]
    xor eax, eax
    xor ebp, ebp
    xor r8d, r8d
    xor r9d, r9d
    xor r10d, r10d
    xor r12d, r12d
    xor r13d, r13d
    xor r14d, r14d
    xor r15d, r15d
    LEAVE
leave_to_service:                   # a called activation: rsi = pc, rdx = badge, rcx = address of words 0 to 8, r8 = control
    .if MEASURED
    mov r9, rdx
    mov r10, rcx
    MEASURE_END
    mov rdx, r9
    mov rcx, r10
    .endif
    RELEASE
    mov rsp, [rdi + A_STACK]
    mov rbx, [rdi + A_MESSAGE]
    mov r11, rsi
    mov rax, rdx
    mov r10, r8
    mov rdi, [rcx]
    mov rsi, [rcx + 8]
    mov rdx, [rcx + 16]
    mov r8, [rcx + 24]
    mov r9, [rcx + 32]
    mov r12, [rcx + 40]
    mov r13, [rcx + 48]
    mov r14, [rcx + 56]
    mov r15, [rcx + 64]
    mov rcx, r11
    xor ebp, ebp
    LEAVE
leave_to_full:                      # all registers, by IRETQ
    MEASURE_END
    RELEASE
restore_full:
    mov rsp, gs:[CPU_STACK]
    push USER_SS
    push [rdi + A_RSP]
    push [rdi + A_FLAGS]
    push USER_CS
    push [rdi + A_RIP]
    LOAD_PRESERVED rdi
    mov rax, [rdi + A_RAX]
    mov rcx, [rdi + A_RCX]
    mov rdx, [rdi + A_RDX]
    mov rsi, [rdi + A_RSI]
    mov r8, [rdi + A_R8]
    mov r9, [rdi + A_R9]
    mov r10, [rdi + A_R10]
    mov r11, [rdi + A_R11]
    mov rdi, [rdi + A_RDI]
    swapgs
    iretq

# ---- traps: every vector enters on an IST stack, which the handler leaves at once ----
.macro TRAP number, code
    .balign 16
    .if \code == 0
    push 0
    .endif
    push \number
    jmp trap_common
.endm
.balign 16
.globl trap_stubs
trap_stubs:
.set i, 0
.rept 256
    .if (i == 8) || (i == 10) || (i == 11) || (i == 12) || (i == 13) || (i == 14) || (i == 17) || (i == 21) || (i == 29) || (i == 30)
    TRAP i, 1
    .else
    TRAP i, 0
    .endif
    .set i, i + 1
.endr
.balign 16
trap_common:                        # [rsp]: vector, error code, rip, cs, flags, rsp, ss
    test byte ptr [rsp + 24], 3
    jz trap_kernel
    swapgs
    push 2                          # clears the user's flags: direction, alignment check (SMAP)
    popfq
    mov gs:[CPU_SCRATCH], rax
    mov rax, gs:[CPU_ACTIVATION]
    mov [rax + A_RBX], rbx
    mov [rax + A_RCX], rcx
    mov [rax + A_RDX], rdx
    mov [rax + A_RSI], rsi
    mov [rax + A_RDI], rdi
    mov [rax + A_RBP], rbp
    mov [rax + A_R8], r8
    mov [rax + A_R9], r9
    mov [rax + A_R10], r10
    mov [rax + A_R11], r11
    mov [rax + A_R12], r12
    mov [rax + A_R13], r13
    mov [rax + A_R14], r14
    mov [rax + A_R15], r15
    mov rcx, gs:[CPU_SCRATCH]
    mov [rax + A_RAX], rcx
    mov byte ptr [rax + A_FRAME], FRAME_FULL
    mov rcx, [rsp + 16]
    mov [rax + A_RIP], rcx
    mov rcx, [rsp + 32]
    mov [rax + A_FLAGS], rcx
    mov rcx, [rsp + 40]
    mov [rax + A_RSP], rcx
    mov rdi, [rsp]
    mov rsi, [rsp + 8]
    mov rsp, gs:[CPU_STACK]
    xor ebp, ebp
    ACQUIRE wait_for_trap
    MEASURE_BEGIN rdi
    call trap_from_user             # (vector, error code): does not return
    ud2
trap_kernel:                        # the idle CPU, or a preemption point; anything else is a bug
    push 2
    popfq
    mov rdi, [rsp]
    cmp rdi, 32
    jae 2f
    mov ecx, GS_BASE                # an NMI or machine check may come before `swapgs` of an entry, or after that of an exit
    rdmsr
    test edx, edx                   # users have base 0, and cannot write it; the nucleus has one in the upper half
    js 2f
    swapgs
2:  mov rsi, [rsp + 8]
    mov rdx, [rsp + 16]
    mov rcx, [rsp + 40]
    mov r8, rbp
    mov rsp, gs:[CPU_STACK]
    cmp byte ptr gs:[CPU_QUIESCENT], 0
    je 1f                           # this CPU has the lock
    cmp rdi, 32
    jb 1f                           # a bug
    push rdi
    push rsi
    ACQUIRE lock_wait
    pop rsi
    pop rdi
    mov byte ptr gs:[CPU_QUIESCENT], 0
1:
lock_taken_in_a_window:
    MEASURE_BEGIN rdi
    call trap_from_nucleus          # (vector, error code, pc, sp, frame pointer): does not return
    ud2

# A preemption point: pending interrupts are taken now, by `trap_kernel`, which does not return. This CPU keeps the lock.
.macro MEASURE_ON                   # the same operation continues: marked by an odd number
    .if MEASURED
    mov rax, gs:[CPU_ENTERED_BY]
    or rax, 1
    MEASURE_BEGIN rax
    .endif
.endm
.globl interrupt_window, pass_lock, go_on_with_empty_stack
go_on_with_empty_stack:
    mov rsp, gs:[CPU_STACK]
    call go_on
    ud2
interrupt_window:
    MEASURE_END
lock_given_at_a_window:             # for the measurement: no CPU wants the lock, and this one keeps it
    sti
    nop
    cli
lock_taken_after_a_window:
    MEASURE_ON
    ret
pass_lock:                          # to the CPUs that wait for it
    MEASURE_END
    RELEASE
    sub rsp, 8
    ACQUIRE lock_wait
    add rsp, 8
    MEASURE_ON
    ret
# Idles: interrupts are taken by `trap_kernel`, which does not return here.
.globl idle_wait
idle_wait:
    mov rsp, gs:[CPU_STACK]
    MEASURE_END
    mov byte ptr gs:[CPU_QUIESCENT], 1
    RELEASE
    sti
1:  hlt
    jmp 1b
