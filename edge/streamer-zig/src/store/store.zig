//! Module `store`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const store_file = @import("store_file.zig");
pub const StoreFile = store_file.StoreFile;

test {
    _ = store_file;
}
