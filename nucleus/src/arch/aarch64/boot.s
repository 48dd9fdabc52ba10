// Entry from a loader that follows the arm64 Linux boot protocol (Documentation/arch/arm64/booting.rst): MMU off, x0 = physical
// address of the device tree, at EL1 or EL2, loaded at a multiple of 2 MiB. From here to EL1 at -2 GiB.
// The tables made here map the GiB in which the image lies, where it is and in the direct map, and the image at -2 GiB;
// `paging::init` replaces them. What is written before the caches are on is dropped from them.
.section .boot, "awx", @progbits
.globl boot_entry
boot_entry:
    b boot_begin
    .long 0
    .quad 0                         // offset from a multiple of 2 MiB
    .quad IMAGE_BYTES
    .quad 0xa                       // little-endian, pages of 4 KiB, anywhere in RAM
    .quad 0, 0, 0
    .ascii "ARM\x64"
    .long 0
boot_begin:
    msr daifset, #0xf
    mov x20, x0
    mrs x9, CurrentEL
    cmp x9, #2 << 2
    b.ne boot_at_el1
    bl boot_leave_el2
boot_at_el1:
    // ---- tables: entries of level 0 for both halves are in one ----
    adrp x0, boot_level0
    adrp x1, boot_level1
    adrp x2, boot_level1_image
    adrp x3, boot_level2
    orr x4, x1, #3
    str x4, [x0]                    // where it is
    str x4, [x0, #256 * 8]          // the direct map
    orr x4, x2, #3
    str x4, [x0, #511 * 8]
    adrp x5, boot_entry             // where the image was loaded
    mov x21, x5
    mov x6, #0x701                  // block, normal memory, inner shareable, accessed
    lsr x7, x5, #30
    orr x4, x6, x7, lsl #30
    str x4, [x1, x7, lsl #3]
    orr x4, x3, #3
    str x4, [x2, #510 * 8]
    orr x4, x5, x6
    str x4, [x3]
    // Lines of the tables that a cache might hold from before are dropped (Arm ARM D7.5.9: DC IVAC).
    dmb sy
    add x4, x0, #4 * 4096
1:  dc ivac, x0
    add x0, x0, #16
    cmp x0, x4
    b.lo 1b
    dsb sy
    bl boot_mmu_on
    ldr x9, =boot_high
    br x9
boot_high:
    ldr x9, =vectors
    msr vbar_el1, x9
    ldr x9, =boot_stack_top
    mov sp, x9
    ldr x9, =image_bss
    ldr x10, =image_end
1:  stp xzr, xzr, [x9], #16
    cmp x9, x10
    b.lo 1b
    ldr x9, =boot_base
    str x21, [x9]
    mov x0, x20
    mov x29, xzr
    mov x30, xzr
    b boot_rust

// From EL2 to EL1, to the return address (Arm ARM D1.3, D19.2): nothing that EL1 does is trapped, timers and counters are its
// own.
boot_leave_el2:
    mov x9, #1 << 31                // HCR_EL2: EL1 is AArch64; keys and instructions of pointer authentication are not trapped
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
2:  ldr x9, =BOOT_SCTLR
    msr sctlr_el1, x9
    mov x9, #0x3c5                  // EL1h, nothing is taken
    msr spsr_el2, x9
    msr elr_el2, x30
    eret

// Tables, attributes and caches on: goes on at the return address. x0 to x15 are used.
boot_mmu_on:
    adrp x0, boot_level0
    mov x1, #MAIR
    msr mair_el1, x1
    ldr x1, =TCR
    mrs x2, id_aa64mmfr0_el1
    and x3, x2, #0xf                // sizes of physical addresses have the same numbers; of more than 48 bits no use is made
    cmp x3, #5
    mov x4, #5
    csel x3, x3, x4, lo
    orr x1, x1, x3, lsl #32
    ubfx x3, x2, #4, #4             // address-space identifiers of 16 bits, if there are
    cmp x3, #2
    cset x3, eq
    orr x1, x1, x3, lsl #36
    msr tcr_el1, x1
    msr ttbr0_el1, x0
    msr ttbr1_el1, x0
    isb
    tlbi vmalle1
    ic iallu
    dsb nsh
    isb
    ldr x1, =SCTLR
    msr sctlr_el1, x1
    isb
    ret

// (root of the upper half): the tables of the upper half are changed for others. Runs where it was loaded, through the lower
// half; meanwhile nothing of the upper half is walked, and nothing of it is kept (Arm ARM D8.14.1: break before make).
.globl boot_switch, boot_level1
boot_switch:
    mrs x1, tcr_el1
    orr x2, x1, #1 << 23            // EPD1
    msr tcr_el1, x2
    isb
    tlbi vmalle1
    dsb nsh
    isb
    msr ttbr1_el1, x0
    isb
    msr tcr_el1, x1
    isb
    ret
.ltorg
.balign 4096
boot_level0: .fill 512, 8, 0
boot_level1:
    .fill 512, 8, 0
boot_level1_image: .fill 512, 8, 0
boot_level2: .fill 512, 8, 0
.section .data
.balign 8
.globl boot_base
boot_base: .quad 0                  // physical address of the image
.section .bss
.balign 4096
.globl boot_stack_guard
boot_stack_guard:                   // never mapped once the final tables are loaded
.skip 4096
.skip 8192
.globl boot_stack_top
boot_stack_top:
.skip 16                            // zeros; see `entry.s`
.text
