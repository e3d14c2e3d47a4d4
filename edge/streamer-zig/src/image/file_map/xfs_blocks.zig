//! The blocks of a file of XFS, and the places of the file system's own tables that are known
//! without a search: group headers, the inodes of its files, the log.

const Place = @import("place.zig");
const xfs_module = @import("../xfs/xfs.zig");
const Inode = xfs_module.Inode;
const Xfs = xfs_module.Xfs;

pub const Error = xfs_module.Error || Place.Error;

/// Behind the names and the index of every directory.
const directory_end = 1 << 37;
/// The headers of a group take four sectors.
const headers = 4;

pub fn addFile(xfs: *const Xfs, inode: *const Inode, place: *const Place, name: u32) Error!void {
    if (inode.format != .extents and inode.format != .tree) return;
    const size = if (inode.kind == .directory) directory_end else inode.size;
    const end = (size + xfs.blockSize() - 1) >> xfs.block_log;
    var block: u64 = 0;
    while (block < end) {
        const run = try xfs_module.findRun(xfs, inode, block);
        const next = run.first +| run.count;
        if (next <= block) return error.Corrupt;
        if (run.on_disk) |at| try place.add(at, run.count << xfs.block_log, name);
        block = next;
    }
}

/// The block of an inode.
pub fn addInode(xfs: *const Xfs, inode: *const Inode, place: *const Place, name: u32) Error!void {
    const block = inode.number >> xfs.inodes_per_block_log;
    try place.add(try xfs.byteOf(block, 1), xfs.blockSize(), name);
}

pub fn addAreas(xfs: *const Xfs, place: *const Place) Error!void {
    const name = try place.addArea("group headers");
    for (0..xfs.groups) |group| try place.add(
        group * xfs.group_blocks << xfs.block_log,
        @as(u64, headers) * xfs.sector_size,
        name,
    );
    const log_at = try xfs.byteOf(xfs.log_block, xfs.log_blocks);
    try place.add(log_at, @as(u64, xfs.log_blocks) << xfs.block_log, try place.addArea("log"));
}
