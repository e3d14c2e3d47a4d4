//! Module `store`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const block_source = @import("block_source.zig");
pub const BlockSource = block_source.BlockSource;
pub const files = @import("files.zig");
pub const Files = files.Files;
pub const LinuxFiles = @import("linux_files.zig");
pub const layer_head = @import("layer_head.zig");
pub const layer_fill = @import("layer_fill.zig");
pub const LayerFill = layer_fill.LayerFill;
pub const store_file = @import("store_file.zig");
pub const StoreFile = store_file.StoreFile;
pub const WriteLayer = @import("write_layer.zig");

test {
    _ = @import("layer_map.zig");
    _ = layer_fill;
    _ = layer_head;
    _ = WriteLayer;
    _ = files;
    _ = LinuxFiles;
    _ = store_file;
}
