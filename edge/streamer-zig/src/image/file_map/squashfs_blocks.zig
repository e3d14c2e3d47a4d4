//! The packed blocks of a file of Squashfs, and its tables. The ends of several files share a
//! block: the file system names those together.

const Place = @import("place.zig");
const squashfs_module = @import("../squashfs/squashfs.zig");
const int = @import("../volume.zig").int;
const Squashfs = squashfs_module.Squashfs;

pub const Error = squashfs_module.Error || Place.Error;

pub fn addFile(
    squashfs: *const Squashfs,
    node: *const squashfs_module.Node,
    place: *const Place,
    name: u32,
) Error!void {
    if (node.kind != .file) return;
    const size: u64 = squashfs.block_size;
    const whole = node.size / size;
    const has_fragment = node.fragment != squashfs_module.no_fragment;
    const blocks = if (has_fragment or node.size % size == 0) whole else whole + 1;
    var list = node.list;
    var at = node.start;
    for (0..@intCast(blocks)) |_| {
        var word: [4]u8 = undefined;
        try squashfs.readMetadata(&list, &word);
        const on_disk = int(u32, &word, 0) & 0x00ff_ffff;
        if (at > squashfs.bytes_used) return error.Corrupt;
        try place.add(at, on_disk, name);
        at += on_disk;
    }
}

pub fn addAreas(squashfs: *const Squashfs, place: *const Place) Error!void {
    try place.add(0, 96, try place.addArea("superblock"));
    if (squashfs.inode_table >= squashfs.bytes_used) return error.Corrupt;
    try place.add(
        squashfs.inode_table,
        squashfs.bytes_used - squashfs.inode_table,
        try place.addArea("inodes, directories and tables"),
    );
    const ends = try place.addArea("ends of files");
    try place.addGround(squashfs.inode_table, ends);
}
