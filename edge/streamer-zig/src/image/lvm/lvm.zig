//! Reads LVM2 volume groups of one disk: the labels of physical volumes, the copy of the metadata
//! that counts, and linear logical volumes as disks to read from (lvm2, lib/format_text/layout.h).
//! Every checksum is enforced. A logical volume that is not linear, or that is partly on another
//! disk, is named and refused.

const std = @import("std");
const store = @import("store");
const text = @import("text.zig");
const volume_module = @import("../volume.zig");
const Allocator = std.mem.Allocator;
const BlockSource = store.BlockSource;
const ReadError = volume_module.ReadError;
const Volume = volume_module.Volume;
const int = volume_module.int;

const sector_size = 512;
/// A label is in one of the first sectors.
const label_sectors = 4;
const areas_max = 16;
const area_size_max = 1 << 40;
/// An area has 1 MiB unless its administrator chose another size.
const text_size_max = 1 << 20;
/// Groups of one disk; a system has one or two.
pub const groups_max = 8;

pub const Group = text.Group;
pub const Error = ReadError || error{ Damaged, OutOfMemory };

/// A CRC-32 without the final inversion.
const Checksum = std.hash.crc.Generic(u32, .{
    .polynomial = 0x04c11db7,
    .initial = @bitReverse(@as(u32, 0xf597a6cf)),
    .reflect_input = true,
    .reflect_output = true,
    .xor_output = 0,
});

/// One partition, or a whole disk, that belongs to a group.
pub const PhysicalVolume = struct {
    id: [32]u8,
    volume: Volume,
    label: [sector_size]u8,
    /// Byte of the label where the lists of places begin.
    places: usize,

    /// Returns the newest whole copy of the group's metadata; null if this volume has none.
    pub fn readGroup(physical: *const PhysicalVolume, gpa: Allocator) Error!?text.Group {
        return metadataOf(gpa, &physical.volume, physical.label[physical.places..]);
    }
};

pub const Refusal = enum { striped, raid, thin, cache, snapshot, other, on_another_disk };

/// A logical volume that can be read: consecutive segments, each contiguous on the disk.
pub const LogicalVolume = struct {
    segments: []const Segment,
    disk: *const BlockSource,

    pub const Segment = struct {
        /// Bytes in the logical volume.
        first: u64,
        size: u64,
        /// Byte of the disk.
        on_disk: u64,
    };

    /// The volume must not move as long as the source is read.
    pub fn source(volume: *LogicalVolume) BlockSource {
        const last = volume.segments[volume.segments.len - 1];
        return .{
            .context = volume,
            .vtable = &.{ .read = readSegments },
            .size = last.first + last.size,
        };
    }

    fn readSegments(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
    ) store.block_source.ReadError!void {
        const volume: *const LogicalVolume = @ptrCast(@alignCast(context));
        var filled: usize = 0;
        for (volume.segments) |segment| {
            const at = offset + filled;
            if (at >= segment.first + segment.size) continue;
            const within = at - segment.first;
            const size: usize = @intCast(@min(buffer.len - filled, segment.size - within));
            try volume.disk.read(buffer[filled..][0..size], segment.on_disk + within);
            filled += size;
            if (filled == buffer.len) return;
        }
    }
};

pub const Found = struct {
    /// "group/volume".
    name: []const u8,
    content: union(enum) { linear: *LogicalVolume, refused: Refusal },
};

/// Returns null if the volume has no label.
pub fn open(volume: *const Volume) (ReadError || error{Damaged})!?PhysicalVolume {
    for (0..label_sectors) |sector| {
        const raw = volume.readArray(sector_size, sector * sector_size) catch |reason|
            return if (reason == error.BeyondTheEnd) null else reason;
        if (!std.mem.startsWith(u8, &raw, "LABELONE")) continue;
        if (!std.mem.eql(u8, raw[24..32], "LVM2 001")) return error.Damaged;
        if (int(u64, &raw, 8) != sector) return error.Damaged;
        if (Checksum.hash(raw[20..]) != int(u32, &raw, 16)) return error.Damaged;
        const header = int(u32, &raw, 20);
        if (header < 32 or header > sector_size - 64) return error.Damaged;
        return .{
            .id = raw[header..][0..32].*,
            .volume = volume.*,
            .label = raw,
            .places = header + 40,
        };
    }
    return null;
}

/// `places`: first those of data, then those of metadata, each list ended by a zero.
fn metadataOf(gpa: Allocator, volume: *const Volume, places: []const u8) Error!?text.Group {
    var at: usize = 0;
    var is_metadata = false;
    var has_area = false;
    for (0..areas_max) |_| {
        if (at + 16 > places.len) return error.Damaged;
        const first = int(u64, places, at);
        const size = int(u64, places, at + 8);
        at += 16;
        if (first == 0) {
            if (is_metadata) return if (has_area) error.Damaged else null;
            is_metadata = true;
            continue;
        }
        if (!is_metadata) continue;
        const found = readArea(gpa, volume, first, size) catch |reason| switch (reason) {
            // The other copy may be whole.
            error.Damaged, error.BeyondTheEnd => null,
            else => |other| return other,
        };
        if (found) |group| return group;
        has_area = true;
    }
    return error.Damaged;
}

/// The area is a ring behind its header; the text may continue at its start. Null for an area that
/// is not used.
fn readArea(gpa: Allocator, volume: *const Volume, first: u64, said: u64) Error!?text.Group {
    if (first >= area_size_max) return error.Damaged;
    const header = try volume.readArray(sector_size, first);
    if (!std.mem.eql(u8, header[4..20], " LVM2 x[5A%r0N*>")) return error.Damaged;
    if (Checksum.hash(header[4..]) != int(u32, &header, 0)) return error.Damaged;
    if (int(u32, &header, 20) != 1 or int(u64, &header, 24) != first) return error.Damaged;
    const size = int(u64, &header, 32);
    if (said != 0 and size != said) return error.Damaged;
    if (size <= sector_size or size > area_size_max) return error.Damaged;
    const at = int(u64, &header, 40);
    const length = int(u64, &header, 48);
    if (at == 0) return null;
    if (at < sector_size or at >= size) return error.Damaged;
    if (length == 0 or length > text_size_max or
        length > size - sector_size) return error.Damaged;
    const buffer = try gpa.alloc(u8, @intCast(length));
    const front = buffer[0..@intCast(@min(length, size - at))];
    try volume.read(front, first + at);
    if (front.len < buffer.len) try volume.read(buffer[front.len..], first + sector_size);
    if (Checksum.hash(buffer) != int(u32, &header, 56)) return error.Damaged;
    return text.read(gpa, buffer) catch |reason| switch (reason) {
        error.OutOfMemory => error.OutOfMemory,
        error.Damaged, error.TooLarge => error.Damaged,
    };
}

/// Lists the visible logical volumes of a group, in the order of its metadata.
pub fn logicalVolumes(
    gpa: Allocator,
    disk: *const BlockSource,
    group: *const text.Group,
    members: []const PhysicalVolume,
) error{ Damaged, OutOfMemory }![]const Found {
    var found: std.ArrayList(Found) = .empty;
    for (group.logicals) |*logical| {
        if (!logical.is_visible) continue;
        const segments = group.segments[logical.segments_first..][0..logical.segments_count];
        if (segments.len == 0) continue;
        try found.append(gpa, .{
            .name = try std.mem.concat(gpa, u8, &.{ group.name, "/", logical.name }),
            .content = if (refusalOf(segments)) |refusal|
                .{ .refused = refusal }
            else if (try locate(gpa, disk, group, members, segments)) |located|
                .{ .linear = located }
            else
                .{ .refused = .on_another_disk },
        });
    }
    return found.items;
}

/// Returns whether a physical volume belongs to one of the groups.
pub fn isMember(groups: []const Group, id: *const [32]u8) bool {
    for (groups) |*group| for (group.physicals) |*physical|
        if (std.mem.eql(u8, &physical.id, id)) return true;
    return false;
}

fn refusalOf(segments: []const text.Segment) ?Refusal {
    for (segments) |*segment| switch (segment.kind) {
        .linear => {},
        .striped => return .striped,
        .raid => return .raid,
        .thin => return .thin,
        .cache => return .cache,
        .snapshot => return .snapshot,
        .other => return .other,
    };
    return null;
}

/// Null if a segment is on another disk.
fn locate(
    gpa: Allocator,
    disk: *const BlockSource,
    group: *const text.Group,
    members: []const PhysicalVolume,
    segments: []const text.Segment,
) error{ Damaged, OutOfMemory }!?*LogicalVolume {
    const extent = group.extent_sectors * sector_size;
    const located = try gpa.alloc(LogicalVolume.Segment, segments.len);
    var next: u64 = 0;
    for (segments, located) |*segment, *place| {
        if (segment.first != next or segment.count == 0) return error.Damaged;
        const physical = physicalOf(group, segment.physical) orelse return error.Damaged;
        const member = memberOf(members, &physical.id) orelse return null;
        if (segment.physical_first > physical.extent_count or
            segment.count > physical.extent_count - segment.physical_first) return error.Damaged;
        next = std.math.add(u64, next, segment.count) catch return error.Damaged;
        // Compared with the partition, so that the sums below cannot overflow.
        const volume_extents = member.volume.size / extent;
        if (physical.first_sector > member.volume.size / sector_size or
            segment.count > volume_extents or
            segment.physical_first > volume_extents - segment.count) return error.Damaged;
        const at = physical.first_sector * sector_size + segment.physical_first * extent;
        const size = segment.count * extent;
        if (at > member.volume.size or size > member.volume.size - at) return error.Damaged;
        place.* = .{
            .first = segment.first * extent,
            .size = size,
            .on_disk = member.volume.first + at,
        };
    }
    const volume = try gpa.create(LogicalVolume);
    volume.* = .{ .segments = located, .disk = disk };
    return volume;
}

fn physicalOf(group: *const text.Group, name: []const u8) ?*const text.Physical {
    for (group.physicals) |*physical| if (std.mem.eql(u8, physical.name, name)) return physical;
    return null;
}

fn memberOf(members: []const PhysicalVolume, id: *const [32]u8) ?*const PhysicalVolume {
    for (members) |*member| if (std.mem.eql(u8, &member.id, id)) return member;
    return null;
}

const testing = std.testing;

pub const test_size = 256 << 10;
const test_area = 4096;
const test_area_size = 16 << 10;

/// A physical volume with the group of `text.test_text`: extents of 4 KiB from 32 KiB on. The text
/// wraps around the end of its area.
pub fn testVolume(bytes: *[test_size]u8) void {
    @memset(bytes, 0);
    const label = bytes[sector_size..][0..sector_size];
    @memcpy(label[0..8], "LABELONE");
    put(u64, label, 8, 1);
    put(u32, label, 20, 32);
    @memcpy(label[24..32], "LVM2 001");
    @memcpy(label[32..64], "Qq5CDLy7qG3qYkVsGaf3oXAKJp1zGbP4");
    put(u64, label, 64, test_size);
    put(u64, label, 72, 32 << 10);
    put(u64, label, 104, test_area);
    put(u64, label, 112, test_area_size);
    put(u32, label, 16, Checksum.hash(label[20..]));
    const at = test_area_size - 700;
    const area = bytes[test_area..][0..test_area_size];
    @memcpy(area[at..], text.test_text[0..700]);
    @memcpy(area[sector_size..][0 .. text.test_text.len - 700], text.test_text[700..]);
    @memcpy(area[4..20], " LVM2 x[5A%r0N*>");
    put(u32, area, 20, 1);
    put(u64, area, 24, test_area);
    put(u64, area, 32, test_area_size);
    put(u64, area, 40, at);
    put(u64, area, 48, text.test_text.len);
    put(u32, area, 56, Checksum.hash(text.test_text));
    put(u32, area, 0, Checksum.hash(area[4..sector_size]));
}

/// Changes one byte of the label, the header of the area or the text, chosen by `choice`.
pub fn damageTest(bytes: *[test_size]u8, choice: u32) void {
    const places = [_]struct { usize, usize }{
        .{ sector_size, 128 },
        .{ test_area + 20, 60 },
        .{ test_area + test_area_size - 700, 700 },
        .{ test_area + sector_size, text.test_text.len - 700 },
    };
    const place = places[choice % places.len];
    bytes[place[0] + choice / 8 % place[1]] = @truncate(choice >> 20);
}

/// Makes the checksums match again.
pub fn sealTest(bytes: *[test_size]u8) void {
    const label = bytes[sector_size..][0..sector_size];
    put(u32, label, 16, Checksum.hash(label[20..]));
    const area = bytes[test_area..][0..test_area_size];
    var copy: [text.test_text.len]u8 = undefined;
    @memcpy(copy[0..700], area[test_area_size - 700 ..]);
    @memcpy(copy[700..], area[sector_size..][0 .. copy.len - 700]);
    put(u32, area, 56, Checksum.hash(&copy));
    put(u32, area, 0, Checksum.hash(area[4..sector_size]));
}

fn put(comptime T: type, into: []u8, at: usize, value: T) void {
    std.mem.writeInt(T, into[at..][0..@sizeOf(T)], value, .little);
}

test "a volume of two segments is read across them" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const gpa = arena.allocator();
    var bytes: [test_size]u8 = undefined;
    testVolume(&bytes);
    const first = (32 << 10) + 5 * 4096;
    const second = (32 << 10) + 4096;
    bytes[first + 16 * 4096 - 1] = 'a';
    bytes[second] = 'b';
    var disk: volume_module.MemoryDisk = .{ .bytes = &bytes };
    const source = disk.source();
    var budget: volume_module.ReadBudget = .{ .reads_left = 1000 };
    const physical = (try open(&.whole(&source, &budget))).?;
    const group = (try physical.readGroup(gpa)).?;
    const found = try logicalVolumes(gpa, &source, &group, &.{physical});
    try testing.expectEqual(2, found.len);
    try testing.expectEqualStrings("fedora/root", found[0].name);
    const volume = found[0].content.linear.source();
    try testing.expectEqual(20 * 4096, volume.size);
    var buffer: [2]u8 = undefined;
    try volume.read(&buffer, 16 * 4096 - 1);
    try testing.expectEqualStrings("ab", &buffer);
    try testing.expectEqual(Refusal.thin, found[1].content.refused);
    try testing.expectEqual(
        Refusal.on_another_disk,
        (try logicalVolumes(gpa, &source, &group, &.{}))[0].content.refused,
    );
}

test "damage of the label, of an area and of the text is found" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    var bytes: [test_size]u8 = undefined;
    for ([_]usize{ 512 + 40, test_area + 41, test_area + test_area_size - 3 }) |at| {
        testVolume(&bytes);
        bytes[at] ^= 1;
        var disk: volume_module.MemoryDisk = .{ .bytes = &bytes };
        const source = disk.source();
        var budget: volume_module.ReadBudget = .{ .reads_left = 1000 };
        const physical = open(&.whole(&source, &budget)) catch |reason| {
            try testing.expectEqual(error.Damaged, reason);
            try testing.expectEqual(512 + 40, at);
            continue;
        };
        try testing.expectError(error.Damaged, physical.?.readGroup(arena.allocator()));
    }
}
