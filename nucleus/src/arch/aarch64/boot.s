// Entry from a loader that follows the arm64 Linux boot protocol (Documentation/arch/arm64/booting.rst): MMU off, x0 =
// physical address of the device tree, at EL1 or EL2, loaded at a multiple of 2 MiB. Continues at EL1 at -2 GiB. The tables
// made here map the GiB of the image, at its physical address and in the direct map, and the image at -2 GiB;
// `paging::begin` replaces them. Cache lines of memory that is written before the caches are on are invalidated.
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
    mrs x9, id_aa64dfr0_el1         // starts the cycle counter, if there is one; see `processor`
    ubfx x9, x9, #8, #4
    cbz x9, 1f
    cmp x9, #15
    b.eq 1f
    msr pmccfiltr_el0, xzr
    mov x9, #1 << 31
    msr pmcntenset_el0, x9
    mov x9, #PMCR
    msr pmcr_el0, x9
1:
    // ---- tables: one of level 0 has the entries of both halves ----
    adrp x0, boot_level0
    adrp x1, boot_level1
    adrp x2, boot_level1_image
    adrp x3, boot_level2
    orr x4, x1, #3
    str x4, [x0]                    // physical addresses
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
    // Invalidates stale cache lines of the tables (Arm ARM D7.5.9: DC IVAC).
    dmb sy
    add x4, x0, #4 * 4096
1:  dc ivac, x0
    add x0, x0, #16
    cmp x0, x4
    b.lo 1b
    dsb sy
    adrp x0, boot_level0
    mov x1, x0
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

// (root of the upper half): replaces the tables of the upper half. Runs at its physical address, through the lower half.
// Meanwhile the upper half is not walked, and no translation of it is cached (Arm ARM D8.14.1: break before make).
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
.section .stack, "aw", @nobits
.balign 4096
.globl boot_stack_guard
boot_stack_guard:                   // not mapped by the final tables
.skip 4096
.skip 8192 - 16
.globl boot_stack_top
boot_stack_top:
.skip 16                            // zeros; see `entry.s`
.text
