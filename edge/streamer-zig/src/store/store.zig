//! Module `store`; ../../../docs/ARCHITECTURE.md says what belongs here.

pub const appender = @import("appender.zig");
pub const Appender = appender.Appender;
pub const block = @import("block.zig");
pub const block_source = @import("block_source.zig");
pub const BlockSource = block_source.BlockSource;
pub const file_set = @import("file_set.zig");
pub const files = @import("files.zig");
pub const Files = files.Files;
pub const layer_fill = @import("layer_fill.zig");
pub const LayerFill = layer_fill.LayerFill;
pub const layer_head = @import("layer_head.zig");
pub const LinuxFiles = @import("linux_files.zig");
pub const manifest = @import("manifest.zig");
pub const Manifest = manifest.Manifest;
pub const node = @import("node.zig");
pub const node_cache = @import("node_cache.zig");
pub const store_dir = @import("store_dir.zig");
pub const Store = store_dir.Store;
pub const OpenVersion = store_dir.OpenVersion;
pub const store_file = @import("store_file.zig");
pub const StoreFile = store_file.StoreFile;
pub const tree_builder = @import("tree_builder.zig");
pub const TreeBuilder = tree_builder.TreeBuilder;
pub const version_reader = @import("version_reader.zig");
pub const VersionReader = version_reader.VersionReader;
pub const WriteLayer = @import("write_layer.zig");

test {
    _ = @import("layer_map.zig");
    _ = @import("store_test.zig");
    _ = LinuxFiles;
    _ = WriteLayer;
    _ = appender;
    _ = block;
    _ = file_set;
    _ = files;
    _ = layer_fill;
    _ = layer_head;
    _ = manifest;
    _ = node;
    _ = node_cache;
    _ = store_dir;
    _ = store_file;
    _ = tree_builder;
    _ = version_reader;
}
