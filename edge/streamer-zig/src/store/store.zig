//! Module `store`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const block_source = @import("block_source.zig");
pub const BlockSource = block_source.BlockSource;
pub const files = @import("files.zig");
pub const Files = files.Files;
pub const LinuxFiles = @import("linux_files.zig");
pub const store_file = @import("store_file.zig");
pub const StoreFile = store_file.StoreFile;

test {
    _ = files;
    _ = LinuxFiles;
    _ = store_file;
}
