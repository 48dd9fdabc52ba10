//! A nucleus whose portals are listed: where its fields stand, and where portal code goes on. The real one has other numbers; the
//! listings show names.

use portalgen::{Nucleus, Offsets, Targets};

macro_rules! offsets {
    ($($name:ident = $value:expr,)* ; $($array:ident = $values:expr),*) => {
        /// Where its fields stand.
        pub const OFFSETS: Offsets = Offsets { $($name: $value,)* $($array: $values,)* };
        /// The name of the field at this offset in its object. Each field has an offset of its own, but for first ones.
        pub fn name_of(offset: i64) -> Option<String> {
            $(if offset != 0 && offset == $value { return Some(qualified(stringify!($name))); })*
            $(if let Some(place) = $values.iter().position(|value: &i32| *value as i64 == offset) {
                return Some(format!("{}+{}", qualified(stringify!($array)), place));
            })*
            None
        }
    };
}

/// `object_field` as `object.field`. A domain's state for one CPU is its share.
fn qualified(name: &str) -> String {
    match name.strip_prefix("per_cpu_") {
        Some(field) => format!("share.{field}"),
        None => name.replacen('_', ".", 1),
    }
}

offsets! {
    cpu_domain = 0, cpu_thread = 8, cpu_activation = 0x110, cpu_table = 0x118, cpu_limit = 0x120, cpu_per_cpu_at = 0x128,
    domain_table = 0x1e0, domain_limit = 0x1e8, domain_as_caller = 0x220, domain_as_callee = 0x228,
    domain_slow = 0x230, per_cpu_pool = 0, per_cpu_crossings = 0x268, per_cpu_root = 0x270, per_cpu_windows = 0x278, domain_low = 0x280, cpu_direct = 0x288,
    thread_top = 0,
    entry_object = 0x408, entry_word0 = 0x1f0, entry_word1 = 0x1f8, entry_versions = 0x420,
    activation_frame = 0, activation_state = 1, activation_next = 0x108, activation_caller = 0x130, activation_thread = 0x138,
    activation_callee = 0x140, activation_domain = 0x148, activation_stack = 0x150, activation_area = 0x158, activation_message = 0x428, activation_back = 0x160, activation_window = 0x428 + 8, activation_slot = 0x438, activation_place = 0x440,
    activation_pc = 0x168, activation_sp = 0x170, activation_pointer = 0x178,
    ; activation_preserved = [0x180, 0x190, 0x1a0, 0x1b0, 0x1c0, 0x1d0]
}

const BASE: u64 = 0xffff_ffff_c000_0000;
/// Where portal code goes on: the slow path of a call.
pub const CALL_SLOWLY: u64 = BASE - 0x1000;
/// The same, with a control word.
pub const CALL_WITH_CONTROL: u64 = BASE - 0x1800;
/// The slow path of a return.
pub const RETURN_SLOWLY: u64 = BASE - 0x2000;
/// The same, where registers were used.
pub const RETURN_SPOILED: u64 = BASE - 0x3000;
/// The same, where they were saved.
pub const RETURN_KEPT: u64 = BASE - 0x4000;
/// The same, with a control word.
pub const RETURN_WITH_CONTROL: u64 = BASE - 0x4800;
/// A call is refused.
pub const REFUSE_CALL: u64 = BASE - 0x5000;
/// A call is refused for its control word.
pub const REFUSE_CONTROL: u64 = BASE - 0x5800;
/// A return is refused.
pub const REFUSE_RETURN: u64 = BASE - 0x6000;
/// Where the code stands.
pub const CODE: u64 = BASE;

/// Frame and state of a caller.
pub const CALLING: u16 = 2 | 2 << 8;
/// State of the top of a chain.
pub const TOP: u8 = 1;
/// State of a free activation.
pub const FREE: u8 = 0;
/// The depth from which on a chain is too long.
pub const DEEPEST: u32 = 31 << 16;

/// All of it.
pub const NUCLEUS: Nucleus =
    Nucleus { offsets: OFFSETS, calling: CALLING, top: TOP, free: FREE, deepest: DEEPEST, direct: 47 };

/// Where portal code goes on.
pub const TARGETS: Targets = Targets {
    call_slowly: CALL_SLOWLY,
    call_slowly_with_control: CALL_WITH_CONTROL,
    return_slowly: RETURN_SLOWLY,
    return_slowly_spoiled: RETURN_SPOILED,
    return_slowly_with_control: RETURN_WITH_CONTROL,
    return_slowly_kept: RETURN_KEPT,
    refuse_call: REFUSE_CALL,
    refuse_control: REFUSE_CONTROL,
    refuse_return: REFUSE_RETURN,
};

/// Names of the places where portal code goes on, and of its return.
pub const PLACES: [&str; 10] = [
    "call_slowly",
    "call_slowly_with_control",
    "return_slowly",
    "return_slowly_spoiled",
    "return_slowly_with_control",
    "return_slowly_kept",
    "refuse_call",
    "refuse_control",
    "refuse_return",
    "back",
];

/// The name of such a place.
pub fn target_name(address: u64) -> Option<&'static str> {
    let places = [
        CALL_SLOWLY,
        CALL_WITH_CONTROL,
        RETURN_SLOWLY,
        RETURN_SPOILED,
        RETURN_WITH_CONTROL,
        RETURN_KEPT,
        REFUSE_CALL,
        REFUSE_CONTROL,
        REFUSE_RETURN,
    ];
    places.iter().zip(PLACES).find(|(place, _)| **place == address).map(|(_, name)| name)
}
