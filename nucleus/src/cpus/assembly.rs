//! Declarations for the assembly of each ISA (`entry.s`): how portable code leaves the nucleus, and the code of table
//! entries.

unsafe extern "C" {
    /// Resumes the activation at this address with its status and word 0; clears the other words.
    pub fn leave_to_light(activation: usize) -> !;
    /// Resumes with the status, all words and the control word.
    pub fn leave_to_words(activation: usize) -> !;
    /// Resumes with all registers.
    pub fn leave_to_full(activation: usize) -> !;
    /// Enters a scheduler's seat with words 0 and 1, and the number of this CPU as word 2.
    pub fn leave_to_entry(word0: u64, word1: u64, activation: usize) -> !;
    /// Enters a called activation. `abi::registers` defines the registers of a called service.
    pub fn leave_to_service(activation: usize, pc: u64, badge: u64, words: *const [u64; 9], control: u64) -> !;
    /// Enables interrupts for a moment; returns only if none is pending.
    pub fn interrupt_window();
    /// Releases the nucleus lock to waiting CPUs, and takes it again; see `lock`.
    pub fn pass_lock();
    /// Waits for the nucleus lock, for which this CPU has announced itself.
    pub fn lock_wait();
    /// Drops the kernel stack, and resumes what runs on this CPU.
    pub fn go_on_with_empty_stack() -> !;
    /// Code of the entry for DISPATCH.
    pub fn op_dispatch();
    /// Sleeps until an interrupt.
    pub fn idle_wait() -> !;
    /// Code of entries that refuse the system call, each with its error.
    pub fn entry_empty();
    pub fn entry_revoked();
    pub fn entry_wrong_kind();
    /// Code of the entry at index 0, and of entries of semaphores and ports.
    pub fn entry_return();
    pub fn entry_semaphore();
    pub fn entry_semaphore_judged();
    pub fn entry_port();
    /// Handles the return of an activation about whose caller nothing is known.
    pub fn return_any();
    /// Slow paths and refusals of portal code; see `portalgen::Targets`.
    pub fn portal_call_slowly();
    pub fn portal_call_with_control();
    pub fn portal_return_slowly();
    pub fn portal_return_spoiled();
    pub fn portal_return_with_control();
    pub fn portal_return_kept();
    pub fn portal_refuse_call();
    pub fn portal_refuse_control();
    pub fn portal_refuse_return();
    /// Code of the entries for kernel operations.
    pub fn op_thread_id();
    pub fn op_light();
    pub fn op_full();
}
