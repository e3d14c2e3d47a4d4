//! Reads content of a version for another edge of the site, whose store is damaged there
//! (packages/proto/PEERS.md, "Transfers"). Everything is compared with the signed tree before it is
//! sent. The version is open for one request only: it can be deleted between two.

const std = @import("std");
const store = @import("store");
const wire = @import("wire").peer_transfer;
const linux = std.os.linux;

pub const Buffer = [store.block.block_size]u8;

/// Two levels of a tree of any size.
const cache_nodes = 16;

/// `Unknown`: the store does not have it. Returns the number of bytes in `into`.
pub fn read(
    gpa: std.mem.Allocator,
    store_path: []const u8,
    asked: *const wire.VersionContent,
    into: *Buffer,
) error{ Unknown, Damaged }!u32 {
    var on = store.LinuxFiles.open(store_path) catch return error.Unknown;
    defer on.close();
    var opened = store.Store.open(gpa, on.files(), .{ .cache_nodes = cache_nodes }) catch
        return error.Unknown;
    defer opened.close(gpa);
    var version = opened.openVersion(asked.version) catch return error.Unknown;
    defer version.close();
    switch (asked.what) {
        .block => {
            if (asked.index >= store.block.blockCount(version.manifest.disk_size))
                return error.Unknown;
            return readBlock(&version, asked.index, into);
        },
        .node, .kernel, .initramfs => return error.Unknown,
    }
}

/// The last block may reach beyond the end of the disk: it is filled with zeros.
fn readBlock(
    version: *store.OpenVersion,
    index: u64,
    into: *Buffer,
) error{Damaged}!u32 {
    const offset = index * store.block.block_size;
    const size: usize = @intCast(@min(into.len, version.manifest.disk_size - offset));
    version.reader.source().read(into[0..size], offset) catch return error.Damaged;
    @memset(into[size..], 0);
    return into.len;
}
