# Takes another CPU from real mode, at the page `PAGE`, to long mode. `start.rs` copies this code to the page and fills in
# the words at its end. Meanwhile the nucleus's root maps the page at its physical address, too.
.section .rodata
.balign 16
.globl start_code, start_words, start_end
.set AT_POINTER, PAGE + start_table_pointer - start_code
.set AT_ROOT, PAGE + start_words - start_code
.set AT_STACK, AT_ROOT + 8
.set AT_BLOCK, AT_ROOT + 16
.set AT_FUNCTION, AT_ROOT + 24
.code16
start_code:
    cli
    cld
    xor ax, ax
    mov ds, ax
    data32 lgdt [AT_POINTER]
    mov eax, cr0
    or al, 1
    mov cr0, eax
    .byte 0x66, 0xea                # far jump to a 32-bit offset
    .long PAGE + start_protected - start_code
    .word 8
.code32
start_protected:
    mov ax, 16
    mov ds, ax
    mov ss, ax
    mov eax, 0x20                   # only PAE: no other bit stays
    mov cr4, eax
    mov eax, [AT_ROOT]
    mov cr3, eax
    mov ecx, 0xc0000080             # EFER: LME, NXE, SCE
    mov eax, 0x901
    xor edx, edx
    wrmsr
    mov eax, 0x80010011             # PG, WP, ET, PE
    mov cr0, eax
    .byte 0xea
    .long PAGE + start_long - start_code
    .word 24
.code64
start_long:
    mov rsp, [AT_STACK]
    mov rdi, [AT_BLOCK]
    mov rax, [AT_FUNCTION]
    xor ebp, ebp
    call rax                        # (block): does not return
    ud2
.balign 8
start_table: .quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff
start_table_pointer:
    .word 31
    .long PAGE + start_table - start_code
.balign 8
start_words:                        # root, stack, block, function
    .quad 0, 0, 0, 0
start_end:
.text
