//! Memory: frames and who pays for them, small objects, spaces, mappings, portal tables.

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
