//! Memory: frames and the accounts that pay for them, small objects, spaces, mappings, windows, portal tables, labels.

pub mod account;
pub mod frames;
pub mod labels;
pub mod lend;
pub mod mapping;
pub mod own;
pub mod portals;
pub mod shapes;
pub mod slab;
pub mod space;
pub mod tables;
