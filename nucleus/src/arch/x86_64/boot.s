# Entry from a PVH loader (32-bit protected mode, paging off, ebx = start info) into long mode at -2 GiB.
# The tables made here map the first GiB at 0, in the direct map and at -2 GiB; `paging::begin` replaces them.
.section .note.pvh, "a", @note
.balign 4
.long 4, 4, 18
.asciz "Xen"
.long boot_entry

.section .boot, "awx", @progbits
.code32
.globl boot_entry
boot_entry:
    cli
    mov esi, ebx
    mov eax, offset boot_pdpt + 3
    mov dword ptr [boot_pml4], eax
    mov dword ptr [boot_pml4 + 256*8], eax
    mov dword ptr [boot_pml4 + 511*8], eax
    mov eax, offset boot_pd + 3
    mov dword ptr [boot_pdpt], eax
    mov dword ptr [boot_pdpt + 510*8], eax
    mov edi, offset boot_pd
    mov eax, 0x83
    mov ecx, 512
1:  mov dword ptr [edi], eax
    mov dword ptr [edi + 4], 0
    add eax, 0x200000
    add edi, 8
    dec ecx
    jnz 1b
    mov eax, 0x20                   # only PAE: no other bit of the loader's stays
    mov cr4, eax
    mov eax, offset boot_pml4
    mov cr3, eax
    mov ecx, 0xc0000080             # EFER: LME, NXE, SCE
    mov eax, 0x901
    xor edx, edx
    wrmsr
    mov eax, 0x80010011             # PG, WP, ET, PE
    mov cr0, eax
    lgdt [boot_gdt_pointer]
    ljmp 8, offset boot_long
.code64
boot_long:
    mov ax, 16
    mov ss, ax
    mov ds, ax
    mov es, ax
    xor eax, eax
    mov fs, ax
    mov gs, ax
    mov edi, esi
    movabs rsp, offset boot_stack_top
    xor ebp, ebp
    movabs rax, offset boot_rust
    call rax
2:  hlt
    jmp 2b
.balign 8
boot_gdt: .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
boot_gdt_pointer:
    .word 23
    .long boot_gdt
    .long 0
.balign 4096
boot_pml4: .fill 512, 8, 0
boot_pdpt: .fill 512, 8, 0
boot_pd: .fill 512, 8, 0
.section .stack, "aw", @nobits
.balign 4096
.globl boot_stack_guard
boot_stack_guard:                   # not mapped by the final tables
.skip 4096
.skip 8192
.globl boot_stack_top
boot_stack_top:
.text
