//! The assembly of each ISA (`entry.s`): what portable code goes on with, and what it puts into portal tables as code of entries.

unsafe extern "C" {
    /// Resumes the activation at this address with status and word 0, the other words cleared.
    pub fn leave_to_light(activation: usize) -> !;
    /// Resumes with all words.
    pub fn leave_to_words(activation: usize) -> !;
    /// Resumes with every register.
    pub fn leave_to_full(activation: usize) -> !;
    /// Enters a scheduler's seat with words 0 and 1, and the number of this CPU as word 2.
    pub fn leave_to_entry(word0: u64, word1: u64, activation: usize) -> !;
    /// Enters a called activation: what a called service finds in its registers says `abi::registers`.
    pub fn leave_to_service(activation: usize, pc: u64, badge: u64, words: *const [u64; 9], control: u64) -> !;
    /// Lets waiting interrupts in; comes back only if there is none.
    pub fn interrupt_window();
    /// Lets others have the nucleus lock first; see `lock`.
    pub fn pass_lock();
    /// Waits for the nucleus lock, which was announced to be wanted.
    pub fn lock_wait();
    /// Goes on with what runs on this CPU, with an empty stack.
    pub fn go_on_afresh() -> !;
    /// Code of the entry of DISPATCH.
    pub fn op_dispatch();
    /// Sleeps until an interrupt.
    pub fn idle_wait() -> !;
    /// Code of entries, which the system call jumps to: of those that are refused, each with its error,
    pub fn entry_empty();
    pub fn entry_revoked();
    pub fn entry_wrong_kind();
    /// of calls, of index 0, of semaphores,
    pub fn entry_return();
    pub fn entry_semaphore();
    pub fn entry_semaphore_judged();
    pub fn entry_port();
    /// Where the return of an activation goes on of whose caller nothing is known.
    pub fn return_any();
    /// Where portal code goes on that cannot make a crossing; see `portalgen::Targets`.
    pub fn portal_call_slowly();
    pub fn portal_call_with_control();
    pub fn portal_return_slowly();
    pub fn portal_return_spoiled();
    pub fn portal_return_with_control();
    pub fn portal_return_kept();
    pub fn portal_refuse_call();
    pub fn portal_refuse_return();
    /// and of kernel operations.
    pub fn op_thread_id();
    pub fn op_light();
    pub fn op_full();
}
