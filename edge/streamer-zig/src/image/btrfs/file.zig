//! Reads the content of a file or link of Btrfs: inline data, extents, holes and prealloc extents,
//! plain or packed by zlib, zstd or lzo. The sectors of a file have checksums in a tree of their
//! own, unless it was made without.

const std = @import("std");
const btrfs_module = @import("btrfs.zig");
const Checksum = @import("checksum.zig").Checksum;
const Codec = @import("../codec/codec.zig").Codec;
const tree_module = @import("tree.zig");
const volume_module = @import("../volume.zig");
const Btrfs = btrfs_module.Btrfs;
const Error = btrfs_module.Error;
const Node = btrfs_module.Node;
const int = volume_module.int;
const item = btrfs_module.item;

const inline_header_size = 21;
const extent_size = 53;
/// Bytes of an extent that is not packed that are read and checked at once.
const window_size = 64 << 10;
/// The object of all checksums.
const checksum_object: u64 = @bitCast(@as(i64, -10));

/// A part of a file, by its bytes.
const Extent = struct {
    first: u64,
    size: u64,
    content: union(enum) {
        hole,
        inline_item,
        stored: Stored,
    } = .hole,
    codec: ?Codec = null,

    fn has(extent: *const Extent, at: u64) bool {
        return at >= extent.first and at - extent.first < extent.size;
    }
};

const Stored = struct {
    /// Logical address and size on the device; a size that is unpacked, and where the part begins.
    logical: u64,
    size_on_disk: u64,
    unpacked_size: u64,
    offset: u64,
};

pub const File = struct {
    btrfs: *const Btrfs,
    node: *const Node,
    extent: Extent = .{ .first = 0, .size = 0 },

    pub fn open(btrfs: *const Btrfs, node: *const Node) File {
        return .{ .btrfs = btrfs, .node = node };
    }

    /// Fills `buffer` from byte `offset`; the range is within the file.
    pub fn read(file: *File, buffer: []u8, offset: u64) Error!void {
        const size = file.node.size;
        if (buffer.len > size or offset > size - buffer.len) return error.BeyondTheEnd;
        var filled: usize = 0;
        while (filled < buffer.len) {
            const at = offset + filled;
            if (!file.extent.has(at)) file.extent = try file.findExtent(at);
            std.debug.assert(file.extent.has(at));
            const within = at - file.extent.first;
            const part = buffer[filled..][0..@intCast(
                @min(buffer.len - filled, file.extent.size - within),
            )];
            filled += switch (file.extent.content) {
                .hole => hole: {
                    @memset(part, 0);
                    break :hole part.len;
                },
                .inline_item => try file.readInline(part, within),
                .stored => |*stored| try file.readStored(part, stored, within),
            };
        }
    }

    fn keyAt(file: *const File, offset: u64) tree_module.Key {
        return .{ .object = file.node.number, .kind = item.extent_data, .offset = offset };
    }

    fn isOurs(file: *const File, found: *const tree_module.Item) bool {
        return found.key.object == file.node.number and found.key.kind == item.extent_data;
    }

    pub fn findExtent(file: *const File, at: u64) Error!Extent {
        const tree = &file.node.tree;
        if (try tree_module.floor(file.btrfs, tree, file.keyAt(at))) |found| {
            if (file.isOurs(&found)) {
                const extent = try file.parse(&found);
                if (extent.has(at)) return extent;
            }
        }
        // Holes have no extents in newer file systems.
        const next = try tree_module.ceiling(file.btrfs, tree, file.keyAt(at + 1));
        const end = if (next) |*found|
            if (file.isOurs(found)) @min(found.key.offset, file.node.size) else file.node.size
        else
            file.node.size;
        return if (end > at) .{ .first = at, .size = end - at } else error.Corrupt;
    }

    fn parse(file: *const File, found: *const tree_module.Item) Error!Extent {
        const bytes = found.bytes;
        if (bytes.len < inline_header_size) return error.Corrupt;
        const unpacked_size = int(u64, bytes, 8);
        if (bytes[17] != 0 or int(u16, bytes, 18) != 0) return error.Unsupported;
        const codec: ?Codec = switch (bytes[16]) {
            0 => null,
            1 => .zlib,
            2 => .lzo,
            3 => .zstd,
            else => return error.Unsupported,
        };
        if (codec != null and unpacked_size > btrfs_module.packed_extent_size)
            return error.Corrupt;
        var extent: Extent = .{ .first = found.key.offset, .size = 0, .codec = codec };
        if (bytes[20] == 0) {
            // It is the whole file, which is smaller than a sector or a node.
            if (found.key.offset != 0 or unpacked_size > file.btrfs.node_size or
                unpacked_size == 0) return error.Corrupt;
            if (codec == null and bytes.len - inline_header_size != unpacked_size)
                return error.Corrupt;
            extent.size = unpacked_size;
            extent.content = .inline_item;
            return extent;
        }
        if (bytes[20] > 2 or bytes.len < extent_size) return error.Corrupt;
        const stored: Stored = .{
            .logical = int(u64, bytes, 21),
            .size_on_disk = int(u64, bytes, 29),
            .unpacked_size = unpacked_size,
            .offset = int(u64, bytes, 37),
        };
        extent.size = int(u64, bytes, 45);
        if (extent.size == 0 or extent.size >= 1 << 62) return error.Corrupt;
        // An address of zero is a hole; what was only reserved reads as zeros.
        if (stored.logical == 0 or bytes[20] == 2) return extent;
        const whole = if (codec == null) stored.size_on_disk else unpacked_size;
        if (stored.offset > whole or extent.size > whole - stored.offset) return error.Corrupt;
        const sector_size = file.btrfs.sector_size;
        if (stored.size_on_disk == 0 or stored.size_on_disk >= 1 << 62 or
            stored.size_on_disk % sector_size != 0 or
            stored.logical % sector_size != 0) return error.Corrupt;
        if (codec != null and stored.size_on_disk > btrfs_module.packed_extent_size)
            return error.Corrupt;
        extent.content = .{ .stored = stored };
        return extent;
    }

    fn readInline(file: *const File, buffer: []u8, within: u64) Error!usize {
        const found = try tree_module.floor(
            file.btrfs,
            &file.node.tree,
            file.keyAt(0),
        ) orelse return error.Corrupt;
        if (!file.isOurs(&found) or found.bytes.len < inline_header_size) return error.Corrupt;
        const content = found.bytes[inline_header_size..];
        const begin: usize = @intCast(within);
        if (file.extent.codec) |codec| {
            const unit = &file.btrfs.workspace.unit;
            unit.source = null;
            const unpacked = unit.buffer[0..@intCast(file.extent.size)];
            try file.unpack(codec, content, unpacked);
            @memcpy(buffer, unpacked[begin..][0..buffer.len]);
        } else if (content.len < file.extent.size) {
            return error.Corrupt;
        } else @memcpy(buffer, content[begin..][0..buffer.len]);
        return buffer.len;
    }

    /// Returns how much was read: at most to the end of a window.
    fn readStored(file: *const File, buffer: []u8, stored: *const Stored, within: u64) Error!usize {
        const in_extent = stored.offset + within;
        if (file.extent.codec) |codec| {
            const unpacked = try file.packedExtent(codec, stored);
            @memcpy(buffer, unpacked[@intCast(in_extent)..][0..buffer.len]);
            return buffer.len;
        }
        const first = in_extent - in_extent % window_size;
        const all = try file.window(
            stored.logical + first,
            @intCast(@min(window_size, stored.size_on_disk - first)),
        );
        const part = all[@intCast(in_extent - first)..];
        const size = @min(part.len, buffer.len);
        @memcpy(buffer[0..size], part[0..size]);
        return size;
    }

    fn window(file: *const File, logical: u64, size: u32) Error![]const u8 {
        const btrfs = file.btrfs;
        const workspace = btrfs.workspace;
        if (workspace.unitAt(&btrfs.volume, logical)) |slot|
            if (slot.size >= size) return slot.bytes()[0..size];
        const slot = &workspace.unit;
        slot.source = null;
        try file.readChecked(slot.buffer[0..size], logical);
        slot.keep(&btrfs.volume, logical, size);
        return slot.bytes();
    }

    fn packedExtent(file: *const File, codec: Codec, stored: *const Stored) Error![]const u8 {
        const btrfs = file.btrfs;
        const workspace = btrfs.workspace;
        if (workspace.unitAt(&btrfs.volume, stored.logical)) |slot|
            if (slot.size == stored.unpacked_size) return slot.bytes();
        const slot = &workspace.unit;
        slot.source = null;
        const input = workspace.packed_unit[0..@intCast(stored.size_on_disk)];
        try file.readChecked(input, stored.logical);
        const size: usize = @intCast(stored.unpacked_size);
        try file.unpack(codec, input, slot.buffer[0..size]);
        slot.keep(&btrfs.volume, stored.logical, size);
        return slot.bytes();
    }

    /// What is not there reads as zeros, as in the kernel.
    fn unpack(file: *const File, codec: Codec, input: []const u8, output: []u8) Error!void {
        const size = if (codec == .lzo)
            try file.unpackLzo(input, output)
        else
            file.btrfs.workspace.unpacker.unpack(codec, input, output) catch
                return error.Corrupt;
        @memset(output[size..], 0);
    }

    /// Each sector is packed by itself, behind its size; a size does not cross a sector's end.
    fn unpackLzo(file: *const File, input: []const u8, output: []u8) Error!usize {
        const sector_size = file.btrfs.sector_size;
        if (input.len < 4) return error.Corrupt;
        const all = int(u32, input, 0);
        if (all > input.len) return error.Corrupt;
        var in: usize = 4;
        var out: usize = 0;
        while (in < all and out < output.len) {
            const left = sector_size - in % sector_size;
            if (left < 4) in += left;
            if (in > all or all - in < 4) return error.Corrupt;
            const size = int(u32, input, in);
            in += 4;
            if (size > all - in) return error.Corrupt;
            const into = output[out..][0..@min(sector_size, output.len - out)];
            out += file.btrfs.workspace.unpacker.unpack(.lzo, input[in..][0..size], into) catch
                return error.Corrupt;
            in += size;
        }
        return out;
    }

    /// Reads whole sectors, and the other copy if one of them differs from its checksum.
    fn readChecked(file: *const File, buffer: []u8, logical: u64) Error!void {
        return tree_module.readLogical(
            file.btrfs,
            buffer,
            logical,
            false,
            Sectors{ .file = file, .logical = logical },
            Sectors.areGood,
        );
    }

    const Sectors = struct {
        file: *const File,
        logical: u64,

        fn areGood(sectors: Sectors, bytes: []const u8) Error!bool {
            if (!sectors.file.node.has_checksums) return true;
            const btrfs = sectors.file.btrfs;
            const sum_size = btrfs.checksum.size();
            var at: usize = 0;
            while (at < bytes.len) {
                const logical = sectors.logical + at;
                const found = try tree_module.floor(btrfs, &btrfs.checksum_tree, .{
                    .object = checksum_object,
                    .kind = item.extent_checksum,
                    .offset = logical,
                }) orelse return false;
                if (found.key.object != checksum_object or found.key.offset > logical) return false;
                const index = (logical - found.key.offset) / btrfs.sector_size;
                const count = found.bytes.len / sum_size;
                if (index >= count) return false;
                // Sums of consecutive sectors follow each other.
                for (@intCast(index)..count) |number| {
                    if (at == bytes.len) break;
                    const sector = bytes[at..][0..btrfs.sector_size];
                    const sum = found.bytes[number * sum_size ..][0..sum_size];
                    if (!btrfs.checksum.matches(sector, sum)) return false;
                    at += sector.len;
                }
            }
            return true;
        }
    };
};
