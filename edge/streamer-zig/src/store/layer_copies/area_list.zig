//! The list of a copy of a write layer (docs/decisions/0088-copies-of-write-layers.md): which
//! blocks the layer owns, and the SHA-256 of each area of 1 MiB that has any. The areas' bytes lie
//! in another file, at their places on the disk, so a block that changes changes one area. Written
//! by the edge that has the layer, and by the one that keeps the copy, which gets the body from it.
//!
//!     offset  size  field
//!          0     8  "BFCOPY\0\0"
//!          8     4  format, 1
//!         12     4  number of entries
//!         16     8  the moment of the copy, in ms since 1970
//!         24     8  when the layer's data had changed last, in ns; 0: unknown
//!         32    32  SHA-256 of the body, which names the content
//!         64    32  SHA-256 of this before
//!         96   512  body: the head of the layer (layers/head.zig)
//!        608        entries, by their areas:
//!                4  area
//!               32  one bit for each of its 256 blocks: the layer owns it
//!               32  SHA-256 of these bits and of the owned blocks; zeros: they are all zeros,
//!                   which a device that discards has many of, and lie in no file
//!
//! Numbers are little-endian.

const std = @import("std");
const base = @import("base");
const Files = @import("../files/files.zig");
const layer_head = @import("../layers/head.zig");
const LayerMap = @import("../layers/map.zig");
const assert = std.debug.assert;

pub const AreaList = @This();

pub const area_blocks = 256;
pub const block_size = LayerMap.block_size;
pub const area_size = area_blocks * block_size;
/// 256 GiB of areas with writes.
pub const entries_max = 256 * 1024;
pub const body_size_max = layer_head.size + entries_max * @sizeOf(Entry);
pub const header_size = 96;
/// Areas have numbers of 32 bits.
const disk_size_max = (1 << 32) * @as(u64, area_size);

const magic = "BFCOPY\x00\x00".*;
const format = 1;

pub const Digest = [32]u8;

pub const Entry = extern struct {
    area: [4]u8,
    owned: [area_blocks / 8]u8,
    digest: Digest,

    comptime {
        assert(@sizeOf(Entry) == 68 and @alignOf(Entry) == 1);
    }

    pub fn index(entry: *const Entry) u32 {
        return std.mem.readInt(u32, &entry.area, .little);
    }

    /// Of the area's first byte on the disk.
    pub fn offset(entry: *const Entry) u64 {
        return @as(u64, entry.index()) * area_size;
    }

    pub fn isOwned(entry: *const Entry, block: u32) bool {
        return entry.owned[block / 8] >> @intCast(block % 8) & 1 == 1;
    }

    pub fn blockCount(entry: *const Entry) u32 {
        var count: u32 = 0;
        for (entry.owned) |byte| count += @popCount(byte);
        return count;
    }

    /// Bytes of the owned blocks, which follow each other where the area is sent.
    pub fn size(entry: *const Entry) u32 {
        return entry.blockCount() * block_size;
    }

    pub fn isZeros(entry: *const Entry) bool {
        return std.mem.allEqual(u8, &entry.digest, 0);
    }

    pub fn isContent(entry: *const Entry, bytes: []const u8) bool {
        return bytes.len == entry.size() and
            std.mem.eql(u8, &digestOf(&entry.owned, bytes), &entry.digest);
    }

    pub const Run = struct { block: u32, count: u32 };

    /// Returns the next owned blocks, or those that are not, from `from` on.
    pub fn run(entry: *const Entry, from: u32, is_owned: bool) ?Run {
        var first = from;
        while (first < area_blocks and entry.isOwned(first) != is_owned) first += 1;
        if (first == area_blocks) return null;
        var end = first + 1;
        while (end < area_blocks and entry.isOwned(end) == is_owned) end += 1;
        return .{ .block = first, .count = end - first };
    }

    /// Reads the owned blocks of the area from a file that has them at their places on the disk.
    pub fn readFrom(
        entry: *const Entry,
        files: Files,
        handle: Files.Handle,
        buffer: *[area_size]u8,
    ) Files.Error!?[]u8 {
        if (entry.isZeros()) {
            @memset(buffer[0..entry.size()], 0);
            return buffer[0..entry.size()];
        }
        var filled: usize = 0;
        var at: u32 = 0;
        while (entry.run(at, true)) |found| {
            const part = buffer[filled..][0 .. found.count * block_size];
            const place = entry.offset() + @as(u64, found.block) * block_size;
            if (!try files.readWhole(handle, part, place)) return null;
            filled += part.len;
            at = found.block + found.count;
        }
        return buffer[0..filled];
    }

    /// Writes the owned blocks to their places on the disk.
    pub fn writeTo(
        entry: *const Entry,
        files: Files,
        handle: Files.Handle,
        bytes: []const u8,
    ) Files.Error!void {
        assert(bytes.len == entry.size());
        assert(!entry.isZeros());
        var rest = bytes;
        var at: u32 = 0;
        while (entry.run(at, true)) |found| {
            const part = rest[0 .. found.count * block_size];
            try files.write(handle, part, entry.offset() + @as(u64, found.block) * block_size);
            rest = rest[part.len..];
            at = found.block + found.count;
        }
    }
};

pub fn digestOf(owned: *const [area_blocks / 8]u8, bytes: []const u8) Digest {
    if (std.mem.allEqual(u8, bytes, 0)) return @splat(0);
    var hash: base.Sha256 = .init(.{});
    hash.update(owned);
    hash.update(bytes);
    return hash.finalResult();
}

/// `Damaged`: no list, or not as it was written. `NewerFormat`: a later release has made it.
pub const Problem = error{ Damaged, NewerFormat };

/// What a list says of itself.
pub const Header = struct {
    count: u32,
    moment_unix_ms: u64,
    /// 0: unknown.
    source_change_ns: u64 = 0,
    digest: Digest,

    pub fn bodySize(header: *const Header) usize {
        return layer_head.size + @as(usize, header.count) * @sizeOf(Entry);
    }

    pub fn emit(header: *const Header) [header_size]u8 {
        var bytes: [header_size]u8 = undefined;
        bytes[0..8].* = magic;
        std.mem.writeInt(u32, bytes[8..12], format, .little);
        std.mem.writeInt(u32, bytes[12..16], header.count, .little);
        std.mem.writeInt(u64, bytes[16..24], header.moment_unix_ms, .little);
        std.mem.writeInt(u64, bytes[24..32], header.source_change_ns, .little);
        bytes[32..64].* = header.digest;
        base.Sha256.hash(bytes[0..64], bytes[64..96], .{});
        return bytes;
    }

    pub fn parse(bytes: *const [header_size]u8) Problem!Header {
        if (!std.mem.eql(u8, bytes[0..8], &magic)) return error.Damaged;
        var digest: Digest = undefined;
        base.Sha256.hash(bytes[0..64], &digest, .{});
        if (!std.mem.eql(u8, bytes[64..96], &digest)) return error.Damaged;
        if (std.mem.readInt(u32, bytes[8..12], .little) != format) return error.NewerFormat;
        const header: Header = .{
            .count = std.mem.readInt(u32, bytes[12..16], .little),
            .moment_unix_ms = std.mem.readInt(u64, bytes[16..24], .little),
            .source_change_ns = std.mem.readInt(u64, bytes[24..32], .little),
            .digest = bytes[32..64].*,
        };
        return if (header.count > entries_max) error.Damaged else header;
    }
};

/// Header and body; owned.
bytes: []u8,
header: Header,
head: layer_head.Head,

/// Takes the body that the header describes. `Damaged`: it is another, or no possible list.
pub fn of(gpa: std.mem.Allocator, header: Header, body: []const u8) (Problem ||
    error{OutOfMemory})!AreaList {
    if (body.len != header.bodySize()) return error.Damaged;
    const bytes = try gpa.alloc(u8, header_size + body.len);
    errdefer gpa.free(bytes);
    bytes[0..header_size].* = header.emit();
    @memcpy(bytes[header_size..], body);
    return check(bytes, header);
}

fn check(bytes: []u8, header: Header) Problem!AreaList {
    var digest: Digest = undefined;
    base.Sha256.hash(bytes[header_size..], &digest, .{});
    if (!std.mem.eql(u8, &digest, &header.digest)) return error.Damaged;
    const head = try layer_head.parse(bytes[header_size..][0..layer_head.size]);
    if (head.binding.disk_size > disk_size_max) return error.Damaged;
    const list: AreaList = .{ .bytes = bytes, .header = header, .head = head };
    const count = LayerMap.blockCount(head.binding.disk_size);
    var behind: u64 = 0;
    for (list.entries()) |*entry| {
        const first = @as(u64, entry.index()) * area_blocks;
        if (entry.index() < behind or first >= count) return error.Damaged;
        behind = @as(u64, entry.index()) + 1;
        if (entry.blockCount() == 0) return error.Damaged;
        // None is behind the end of the disk.
        var at: u32 = 0;
        while (entry.run(at, true)) |found| {
            at = found.block + found.count;
            if (first + at > count) return error.Damaged;
        }
    }
    return list;
}

pub fn deinit(list: *AreaList, gpa: std.mem.Allocator) void {
    gpa.free(list.bytes);
    list.* = undefined;
}

pub fn entries(list: *const AreaList) []const Entry {
    const rest = list.bytes[header_size + layer_head.size ..];
    return @as([*]const Entry, @ptrCast(rest.ptr))[0..list.header.count];
}

/// Bytes that the layer's blocks take.
pub fn ownedBytes(list: *const AreaList) u64 {
    var size: u64 = 0;
    for (list.entries()) |*entry| size += entry.size();
    return size;
}

/// Bytes of a file that has every area of the disk.
pub fn areasSize(list: *const AreaList) u64 {
    return LayerMap.blockCount(list.head.binding.disk_size) * @as(u64, block_size);
}

pub fn find(list: *const AreaList, area: u32) ?*const Entry {
    const all = list.entries();
    const at = std.sort.lowerBound(Entry, all, area, compareArea);
    return if (at < all.len and all[at].index() == area) &all[at] else null;
}

fn compareArea(area: u32, entry: Entry) std.math.Order {
    return std.math.order(area, entry.index());
}

pub fn setMoment(list: *AreaList, unix_ms: u64) void {
    list.header.moment_unix_ms = unix_ms;
    list.bytes[0..header_size].* = list.header.emit();
}

pub const ReadError = Files.Error || Problem || error{OutOfMemory};

pub fn read(gpa: std.mem.Allocator, files: Files, name: []const u8) ReadError!AreaList {
    const handle = try files.open(name, .read);
    defer files.close(handle);
    const header = try readHeader(files, handle);
    const bytes = try gpa.alloc(u8, header_size + header.bodySize());
    errdefer gpa.free(bytes);
    if (!try files.readWhole(handle, bytes, 0)) return error.Damaged;
    if (try files.size(handle) != bytes.len) return error.Damaged;
    return check(bytes, header);
}

pub fn readHeader(files: Files, handle: Files.Handle) (Files.Error || Problem)!Header {
    var bytes: [header_size]u8 = undefined;
    if (!try files.readWhole(handle, &bytes, 0)) return error.Damaged;
    return .parse(&bytes);
}

/// Reads the head of the layer without reading the list.
pub fn readHead(files: Files, handle: Files.Handle) (Files.Error || Problem)!layer_head.Head {
    var bytes: [layer_head.size]u8 = undefined;
    if (!try files.readWhole(handle, &bytes, header_size)) return error.Damaged;
    return layer_head.parse(&bytes);
}

/// Reads one entry without reading the list, at most 18 short reads; null: the area has none.
pub fn readEntry(
    files: Files,
    handle: Files.Handle,
    header: *const Header,
    area: u32,
) Files.Error!?Entry {
    var low: u32 = 0;
    var high: u32 = header.count;
    while (low < high) {
        const middle = low + (high - low) / 2;
        var entry: Entry = undefined;
        const place = header_size + layer_head.size + @as(u64, middle) * @sizeOf(Entry);
        if (!try files.readWhole(handle, std.mem.asBytes(&entry), place)) return null;
        if (entry.index() == area) return entry;
        if (entry.index() < area) low = middle + 1 else high = middle;
    }
    return null;
}

/// Writes the list durably: completely or not at all.
pub fn write(list: *const AreaList, files: Files, name: []const u8) Files.Error!void {
    return files.replace(name, list.bytes);
}

/// Makes a list, area by area, in their order.
pub const Builder = struct {
    gpa: std.mem.Allocator,
    body: std.ArrayList(u8) = .empty,

    pub fn init(
        gpa: std.mem.Allocator,
        head: *const layer_head.Head,
    ) error{OutOfMemory}!Builder {
        var builder: Builder = .{ .gpa = gpa };
        try builder.body.appendSlice(gpa, &layer_head.emit(head));
        return builder;
    }

    pub fn deinit(builder: *Builder) void {
        builder.body.deinit(builder.gpa);
        builder.* = undefined;
    }

    /// `TooLarge`: a layer with so many areas is not copied.
    pub fn add(builder: *Builder, entry: *const Entry) error{ OutOfMemory, TooLarge }!void {
        if (builder.body.items.len + @sizeOf(Entry) > body_size_max) return error.TooLarge;
        try builder.body.appendSlice(builder.gpa, std.mem.asBytes(entry));
    }

    pub fn finish(
        builder: *Builder,
        moment_unix_ms: u64,
        source_change_ns: u64,
    ) error{OutOfMemory}!AreaList {
        const body = builder.body.items;
        var header: Header = .{
            .count = @intCast(@divExact(body.len - layer_head.size, @sizeOf(Entry))),
            .moment_unix_ms = moment_unix_ms,
            .source_change_ns = source_change_ns,
            .digest = undefined,
        };
        base.Sha256.hash(body, &header.digest, .{});
        return of(builder.gpa, header, body) catch |err| switch (err) {
            error.OutOfMemory => error.OutOfMemory,
            error.Damaged, error.NewerFormat => unreachable,
        };
    }
};
