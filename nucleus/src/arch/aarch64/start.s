// Code that runs at its physical address until the MMU is on. The boot CPU runs it; all others enter at `start_entry`. PSCI
// CPU_ON (DEN 0022, 5.6) enters with MMU and caches off, at the exception level at which the machine began.
.text
.globl start_entry, start_end
start_entry:
    msr daifset, #0xf
    mrs x9, CurrentEL
    cmp x9, #2 << 2
    b.ne 1f
    bl boot_leave_el2
1:  adrp x9, start_words
    add x9, x9, :lo12:start_words
    ldp x0, x1, [x9]
    bl boot_mmu_on
    ldr x9, =start_high
    br x9
start_high:
    ldr x9, =vectors
    msr vbar_el1, x9
    ldr x9, =start_words
    ldp x10, x0, [x9, #16]
    ldr x9, [x9, #32]
    mov sp, x10
    mov x29, xzr
    mov x30, xzr
    br x9                           // (block): does not return

// Goes from EL2 to EL1, at the return address (Arm ARM D1.3, D19.2). EL2 traps nothing, and EL1 has the timers and counters.
boot_leave_el2:
    mov x9, #1 << 31                // HCR_EL2: EL1 is AArch64; pointer authentication (keys, instructions) is not trapped
    orr x9, x9, #3 << 40
    msr hcr_el2, x9
    mov x9, #3                      // CNTHCTL_EL2: physical counter and timer
    msr cnthctl_el2, x9
    msr cntvoff_el2, xzr
    mov x9, #0x33ff                 // CPTR_EL2: floating point is not trapped
    msr cptr_el2, x9
    msr hstr_el2, xzr
    msr vttbr_el2, xzr
    mrs x9, id_aa64dfr0_el1         // MDCR_EL2: all counters are EL1's, if there is a unit
    ubfx x10, x9, #8, #4
    mov x9, xzr
    cbz x10, 1f
    cmp x10, #15
    b.eq 1f
    mrs x9, pmcr_el0
    ubfx x9, x9, #11, #5
1:  msr mdcr_el2, x9
    mrs x9, midr_el1
    msr vpidr_el2, x9
    mrs x9, mpidr_el1
    msr vmpidr_el2, x9
    mrs x9, id_aa64pfr0_el1         // GIC: the system registers are EL1's (IHI 0069, 12.2.21)
    ubfx x9, x9, #24, #4
    cbz x9, 2f
    mrs x9, S3_4_C12_C9_5           // ICC_SRE_EL2
    orr x9, x9, #0xf
    msr S3_4_C12_C9_5, x9
    isb
    msr S3_4_C12_C11_0, xzr         // ICH_HCR_EL2
2:  mrs x9, id_aa64mmfr0_el1        // no fine-grained traps: HFGRTR_EL2, HFGWTR_EL2, HFGITR_EL2, HDFGRTR_EL2, HDFGWTR_EL2
    ubfx x9, x9, #56, #4
    cbz x9, 3f
    msr S3_4_C1_C1_4, xzr
    msr S3_4_C1_C1_5, xzr
    msr S3_4_C1_C1_6, xzr
    msr S3_4_C3_C1_4, xzr
    msr S3_4_C3_C1_5, xzr
3:  mrs x9, id_aa64mmfr1_el1        // HCRX_EL2
    ubfx x9, x9, #40, #4
    cbz x9, 4f
    msr S3_4_C1_C2_2, xzr
4:  ldr x9, =BOOT_SCTLR
    msr sctlr_el1, x9
    mov x9, #0x3c5                  // EL1h, all interrupts masked
    msr spsr_el2, x9
    msr elr_el2, x30
    eret

// boot_mmu_on(x0 = table of the lower half, which maps this code at its physical address, x1 = table of the upper half).
// Sets attributes and tables, switches on MMU and caches, and returns. May change x0 to x15.
boot_mmu_on:
    msr ttbr0_el1, x0
    msr ttbr1_el1, x1
    mov x1, #MAIR
    msr mair_el1, x1
    ldr x1, =TCR
    mrs x2, id_aa64mmfr0_el1
    and x3, x2, #0xf                // IPS has the codes of PARange; at most 48 bits are used
    cmp x3, #5
    mov x4, #5
    csel x3, x3, x4, lo
    orr x1, x1, x3, lsl #32
    ubfx x3, x2, #4, #4             // ASIDs of 16 bits, if the processor has them
    cmp x3, #2
    cset x3, eq
    orr x1, x1, x3, lsl #36
    msr tcr_el1, x1
    isb
    tlbi vmalle1
    ic iallu
    dsb nsh
    isb
    ldr x1, =SCTLR
    msr sctlr_el1, x1
    isb
    ret
.ltorg
start_end:
.section .data
.balign 64
.globl start_words
start_words:                        // tables of both halves, stack, block, function
    .quad 0, 0, 0, 0, 0
    .skip 24
.text
