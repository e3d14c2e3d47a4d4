//! The extents of a file of Btrfs on the device, with their second copies.

const btrfs_module = @import("../btrfs/btrfs.zig");
const btrfs_file = @import("../btrfs/file.zig");
const tree = @import("../btrfs/tree.zig");
const Place = @import("place.zig");
const Btrfs = btrfs_module.Btrfs;

pub const Error = btrfs_module.Error || Place.Error;

pub fn addFile(
    btrfs: *const Btrfs,
    node: *const btrfs_module.Node,
    place: *const Place,
    name: u32,
) Error!void {
    if (node.kind != .file) return;
    const file: btrfs_file.File = .open(btrfs, node);
    var at: u64 = 0;
    while (at < node.size) {
        const extent = try file.findExtent(at);
        switch (extent.content) {
            // A small file lies in the trees.
            .hole, .inline_item => {},
            .stored => |stored| {
                const is_packed = extent.codec != null;
                const logical = if (is_packed) stored.logical else stored.logical + stored.offset;
                const size = if (is_packed) stored.size_on_disk else extent.size;
                const chunk = try tree.chunkOf(btrfs, logical, size, false);
                for (chunk.copies[0..chunk.copy_count]) |copy|
                    try place.add(copy + (logical - chunk.logical), size, name);
            },
        }
        at = extent.first + extent.size;
    }
}
