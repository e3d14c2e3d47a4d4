//! Extended attributes as ext4 keeps them (kernel.org, filesystems/ext4, "Extended Attributes"): in
//! the rest of the inode, or in one block. Lists of access rights have a format of their own there.

const std = @import("std");
const base = @import("base");
const crc32c = @import("../crc32c.zig");
const fields = @import("fields.zig");
const FileTree = @import("file_tree.zig");
const layout_module = @import("layout.zig");
const put = fields.put;
const Allocator = std.mem.Allocator;
const Xattr = FileTree.Xattr;

const magic = 0xea020000;
const block_size = layout_module.block_size;
const block_header_size = 32;
const entry_size = 16;
/// Behind the fields of an inode of 256 bytes, whose extra part has 32.
pub const inode_place = 128 + 32;
const inode_room = layout_module.inode_size - inode_place;

pub const Error = error{ OutOfMemory, XattrsTooLarge, XattrInvalid };

const Prefix = struct { index: u8, text: []const u8 };
/// The whole name is the prefix for the first two.
const prefixes = [_]Prefix{
    .{ .index = 2, .text = "system.posix_acl_access" },
    .{ .index = 3, .text = "system.posix_acl_default" },
    .{ .index = 1, .text = "user." },
    .{ .index = 4, .text = "trusted." },
    .{ .index = 6, .text = "security." },
    .{ .index = 7, .text = "system." },
};

const Entry = struct { index: u8, name: []const u8, value: []const u8 };

/// Extended attributes of one file, ready to be written.
pub const Packed = struct {
    entries: []const Entry,
    is_in_inode: bool,

    /// Fills the end of an inode.
    pub fn writeInode(ready: *const Packed, inode: *[layout_module.inode_size]u8) void {
        if (!ready.is_in_inode or ready.entries.len == 0) return;
        put(u32, inode, inode_place, magic);
        // Hashes are not needed here, and values count from the first entry on.
        writeEntries(inode[inode_place + 4 ..], 0, ready.entries, false);
    }

    /// Fills a block of their own.
    pub fn writeBlock(ready: *const Packed, block: *[block_size]u8, number: u64, seed: u32) void {
        @memset(block, 0);
        put(u32, block, 0, magic);
        put(u32, block, 4, 1);
        put(u32, block, 8, 1);
        writeEntries(block, block_header_size, ready.entries, true);
        var hash: u32 = 0;
        for (ready.entries) |entry| hash = std.math.rotl(u32, hash, 16) ^ hashOf(&entry);
        put(u32, block, 12, hash);
        var place: [8]u8 = undefined;
        put(u64, &place, 0, number);
        put(u32, block, 16, crc32c.update(crc32c.update(seed, &place), block));
    }
};

pub fn pack(arena: Allocator, given: []const Xattr) Error!Packed {
    const entries = try arena.alloc(Entry, given.len);
    var size: usize = 4;
    for (entries, given) |*entry, xattr| {
        entry.* = try entryOf(arena, &xattr);
        size += entry_size + std.mem.alignForward(usize, entry.name.len, 4) +
            std.mem.alignForward(usize, entry.value.len, 4);
    }
    if (size > block_size - block_header_size) return error.XattrsTooLarge;
    // The kernel looks for names in this order.
    base.sort(Entry, entries, {}, isBefore);
    for (entries, 0..) |*entry, index| if (index > 0 and !isBefore({}, entries[index - 1], entry.*))
        return error.XattrInvalid;
    return .{ .entries = entries, .is_in_inode = size <= inode_room - 4 };
}

fn entryOf(arena: Allocator, xattr: *const Xattr) Error!Entry {
    for (&prefixes) |*prefix| {
        const name = std.mem.cutPrefix(u8, xattr.name, prefix.text) orelse continue;
        const is_list = prefix.index == 2 or prefix.index == 3;
        if (is_list != (name.len == 0) or name.len > 255) return error.XattrInvalid;
        return .{
            .index = prefix.index,
            .name = name,
            .value = if (is_list) try convertRights(arena, xattr.value) else xattr.value,
        };
    }
    return error.XattrInvalid;
}

/// Programs see version 2, with 8 bytes an entry; the disk has version 1, where only entries of
/// named users and groups have an id.
fn convertRights(arena: Allocator, value: []const u8) Error![]const u8 {
    if (value.len < 4 or (value.len - 4) % 8 != 0) return error.XattrInvalid;
    if (std.mem.readInt(u32, value[0..4], .little) != 2) return error.XattrInvalid;
    const made = try arena.alloc(u8, value.len);
    put(u32, made, 0, 1);
    var size: usize = 4;
    var at: usize = 4;
    while (at < value.len) : (at += 8) {
        const tag = std.mem.readInt(u16, value[at..][0..2], .little);
        const has_id = switch (tag) {
            0x01, 0x04, 0x10, 0x20 => false,
            0x02, 0x08 => true,
            else => return error.XattrInvalid,
        };
        const part: usize = if (has_id) 8 else 4;
        @memcpy(made[size..][0..part], value[at..][0..part]);
        size += part;
    }
    return made[0..size];
}

fn isBefore(_: void, a: Entry, b: Entry) bool {
    if (a.index != b.index) return a.index < b.index;
    if (a.name.len != b.name.len) return a.name.len < b.name.len;
    return std.mem.order(u8, a.name, b.name) == .lt;
}

fn writeEntries(bytes: []u8, first: usize, entries: []const Entry, has_hashes: bool) void {
    var at = first;
    var value_at = bytes.len;
    for (entries) |*entry| {
        value_at -= std.mem.alignForward(usize, entry.value.len, 4);
        @memcpy(bytes[value_at..][0..entry.value.len], entry.value);
        bytes[at] = @intCast(entry.name.len);
        bytes[at + 1] = entry.index;
        put(u16, bytes, at + 2, if (entry.value.len == 0) 0 else @intCast(value_at));
        put(u32, bytes, at + 8, @intCast(entry.value.len));
        if (has_hashes) put(u32, bytes, at + 12, hashOf(entry));
        @memcpy(bytes[at + entry_size ..][0..entry.name.len], entry.name);
        at += entry_size + std.mem.alignForward(usize, entry.name.len, 4);
    }
}

/// `ext4_xattr_hash_entry` of the kernel.
fn hashOf(entry: *const Entry) u32 {
    var hash: u32 = 0;
    for (entry.name) |byte| hash = std.math.rotl(u32, hash, 5) ^ byte;
    var at: usize = 0;
    while (at < entry.value.len) : (at += 4) {
        var word: [4]u8 = @splat(0);
        const part = entry.value[at..@min(at + 4, entry.value.len)];
        @memcpy(word[0..part.len], part);
        hash = std.math.rotl(u32, hash, 16) ^ std.mem.readInt(u32, &word, .little);
    }
    return hash;
}

const testing = std.testing;

test "a small attribute is kept in the inode, a large one in a block, and others are refused" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const gpa = arena.allocator();
    const capability: Xattr =
        .{ .name = "security.capability", .value = "01234567890123456789" };
    const small = try pack(gpa, &.{capability});
    try testing.expect(small.is_in_inode);
    const large = try pack(gpa, &.{
        .{ .name = "user.b", .value = &@as([100]u8, @splat(1)) },
        .{ .name = "user.a", .value = "" },
    });
    try testing.expect(!large.is_in_inode);
    try testing.expectEqualStrings("a", large.entries[0].name);
    for ([_]Xattr{
        .{ .name = "system.posix_acl_access", .value = "x" },
        .{ .name = "unknown.x", .value = "" },
    }) |wrong| try testing.expectError(error.XattrInvalid, pack(gpa, &.{wrong}));
    try testing.expectError(error.XattrInvalid, pack(gpa, &.{
        .{ .name = "user.a", .value = "" },
        .{ .name = "user.a", .value = "" },
    }));
    try testing.expectError(error.XattrsTooLarge, pack(gpa, &.{
        .{ .name = "user.a", .value = &@as([4096]u8, @splat(1)) },
    }));
}
