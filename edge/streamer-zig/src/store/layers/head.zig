//! The head of a write layer: its kind, the version below it and its owner. One sector, replaced
//! atomically by a rename.

const std = @import("std");
const base = @import("base");
const simulated = @import("../simulated.zig");
const assert = std.debug.assert;
const Uuid = base.Uuid;

pub const size = 512;
const magic = "BFLAYER\x00".*;
/// 2 has checksums beside the data (sums.zig).
const format = 2;
const format_without_sums = 1;

pub const Class = enum(u8) {
    /// Ends with the process that holds it.
    edge = 1,
    /// Each write is on the disk before it is acknowledged.
    edge_persistent = 2,
    /// Written by the only writer of a maintenance version.
    maintenance = 3,
    /// A private image of one device above a version.
    private = 4,

    pub fn isDurable(class: Class) bool {
        return class != .edge;
    }
};

/// The owner and the disk below; never changes while the layer exists.
pub const Binding = struct {
    class: Class,
    device_id: Uuid,
    version_id: Uuid,
    /// Root hash of the version; zeros for a raw file.
    version_root: [32]u8 = @splat(0),
    /// Bytes; a multiple of 512, not 0.
    disk_size: u64,
};

pub const Head = struct {
    /// Unguessable; binds data file and map to this head.
    layer_id: Uuid,
    binding: Binding,
    /// Limit of the bytes that its blocks may take.
    limit_bytes: u64,
    /// Number of times the head was written.
    sequence: u64,
    /// A file with the checksums of its blocks exists.
    has_sums: bool = true,
};

pub const Problem = error{ Damaged, NewerFormat };

const Layout = extern struct {
    magic: [8]u8,
    format: [4]u8,
    class: u8,
    reserved: [3]u8,
    layer_id: [16]u8,
    device_id: [16]u8,
    version_id: [16]u8,
    version_root: [32]u8,
    disk_size: [8]u8,
    limit_bytes: [8]u8,
    sequence: [8]u8,
    padding: [360]u8,
    checksum: [32]u8,

    comptime {
        assert(@sizeOf(Layout) == size);
    }
};

pub fn emit(head: *const Head) [size]u8 {
    var layout: Layout = undefined;
    layout.magic = magic;
    const written: u32 = if (head.has_sums) format else format_without_sums;
    std.mem.writeInt(u32, &layout.format, written, .little);
    layout.class = @backingInt(head.binding.class);
    layout.reserved = @splat(0);
    layout.layer_id = head.layer_id.bytes;
    layout.device_id = head.binding.device_id.bytes;
    layout.version_id = head.binding.version_id.bytes;
    layout.version_root = head.binding.version_root;
    std.mem.writeInt(u64, &layout.disk_size, head.binding.disk_size, .little);
    std.mem.writeInt(u64, &layout.limit_bytes, head.limit_bytes, .little);
    std.mem.writeInt(u64, &layout.sequence, head.sequence, .little);
    layout.padding = @splat(0);
    layout.checksum = checksumOf(&layout);
    return std.mem.toBytes(layout);
}

pub fn parse(bytes: *const [size]u8) Problem!Head {
    const layout: *const Layout = @ptrCast(bytes);
    if (!std.mem.eql(u8, &layout.magic, &magic)) return error.Damaged;
    const is_whole = std.mem.eql(u8, &layout.checksum, &checksumOf(layout)) or
        simulated.has(.head_unchecked);
    if (!is_whole) return error.Damaged;
    const written = std.mem.readInt(u32, &layout.format, .little);
    if (written != format and written != format_without_sums) return error.NewerFormat;
    const head: Head = .{
        .layer_id = .fromBytes(layout.layer_id),
        .binding = .{
            .class = std.enums.fromInt(Class, layout.class) orelse return error.Damaged,
            .device_id = .fromBytes(layout.device_id),
            .version_id = .fromBytes(layout.version_id),
            .version_root = layout.version_root,
            .disk_size = std.mem.readInt(u64, &layout.disk_size, .little),
        },
        .limit_bytes = std.mem.readInt(u64, &layout.limit_bytes, .little),
        .sequence = std.mem.readInt(u64, &layout.sequence, .little),
        .has_sums = written == format,
    };
    if (head.binding.disk_size == 0 or head.binding.disk_size % 512 != 0) return error.Damaged;
    return head;
}

fn checksumOf(layout: *const Layout) [32]u8 {
    var digest: [32]u8 = undefined;
    base.Sha256.hash(std.mem.asBytes(layout)[0..@offsetOf(Layout, "checksum")], &digest, .{});
    return digest;
}

const testing = std.testing;

test "a head is decoded from its bytes, and every flipped bit is found" {
    const head: Head = .{
        .layer_id = .fromBytes(@splat(1)),
        .binding = .{
            .class = .edge_persistent,
            .device_id = .fromBytes(@splat(2)),
            .version_id = .fromBytes(@splat(3)),
            .version_root = @splat(4),
            .disk_size = 100 << 30,
        },
        .limit_bytes = 5 << 30,
        .sequence = 7,
    };
    const bytes = emit(&head);
    try testing.expectEqualDeep(head, try parse(&bytes));
    for (0..size * 8) |bit| {
        var damaged = bytes;
        damaged[bit / 8] ^= @as(u8, 1) << @intCast(bit % 8);
        try testing.expectError(error.Damaged, parse(&damaged));
    }
}

test "a head of a later format, an unknown class or an impossible size is refused, whole as it is" {
    const head: Head = .{
        .layer_id = .fromBytes(@splat(1)),
        .binding = .{
            .class = .edge,
            .device_id = .fromBytes(@splat(2)),
            .version_id = .fromBytes(@splat(3)),
            .disk_size = 512,
        },
        .limit_bytes = 0,
        .sequence = 0,
    };
    _ = try parse(&emit(&head));
    const Case = struct { at: usize, byte: u8, expected: Problem };
    for ([_]Case{
        .{ .at = @offsetOf(Layout, "format"), .byte = 3, .expected = error.NewerFormat },
        .{ .at = @offsetOf(Layout, "format"), .byte = 0, .expected = error.NewerFormat },
        .{ .at = @offsetOf(Layout, "class"), .byte = 0, .expected = error.Damaged },
        .{ .at = @offsetOf(Layout, "class"), .byte = 5, .expected = error.Damaged },
        .{ .at = @offsetOf(Layout, "disk_size"), .byte = 1, .expected = error.Damaged },
        .{ .at = @offsetOf(Layout, "disk_size") + 1, .byte = 0, .expected = error.Damaged },
    }) |case| {
        var bytes = emit(&head);
        bytes[case.at] = case.byte;
        const layout: *Layout = @ptrCast(&bytes);
        layout.checksum = checksumOf(layout);
        try testing.expectError(case.expected, parse(&bytes));
    }
}

test "only the layer of an edge without persistence ends with its process" {
    for (std.enums.values(Class)) |class|
        try testing.expectEqual(class != .edge, class.isDurable());
}
