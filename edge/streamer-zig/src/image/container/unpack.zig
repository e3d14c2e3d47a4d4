//! Unpacks compressed units of an image, for several threads at once. Each has a place of its own,
//! which keeps its last unit: file systems read one unit in many small parts.

const std = @import("std");
const extent_module = @import("extent.zig");
const Fault = @import("fault.zig").Fault;
const File = @import("file.zig");
const Allocator = std.mem.Allocator;
const Compressed = extent_module.Compressed;
const flate = std.compress.flate;
const zstd = std.compress.zstd;

/// Threads of an import, and the one that reads boot files.
const slots_max = 8;
/// What QEMU writes: level 3 of zstd has windows of at most 2 MiB.
const zstd_window_size = 2 << 20;

pub const Unpacker = @This();

/// Must be safe for several threads.
gpa: Allocator,
slots: [slots_max]Slot = @splat(.{}),

const Slot = struct {
    is_busy: std.atomic.Value(bool) = .init(false),
    /// The unit that `unit` has, if its size is not 0.
    layer: usize = 0,
    location: u64 = 0,
    unit_size: u32 = 0,
    unit: []u8 = &.{},
    packed_bytes: []u8 = &.{},
    window: []u8 = &.{},

    fn has(slot: *const Slot, layer: usize, what: *const Compressed) bool {
        return slot.unit_size == what.unit_size and slot.layer == layer and
            slot.location == what.location;
    }
};

pub fn init(gpa: Allocator) Unpacker {
    return .{ .gpa = gpa };
}

pub fn deinit(unpacker: *Unpacker) void {
    for (&unpacker.slots) |*slot| {
        for ([_][]u8{ slot.unit, slot.packed_bytes, slot.window }) |bytes|
            unpacker.gpa.free(bytes);
    }
    unpacker.* = undefined;
}

/// Fills `buffer` with the unit's bytes from `what.skip` on.
///
/// @param layer tells units of several files apart
pub fn read(
    unpacker: *Unpacker,
    file: *const File,
    layer: usize,
    what: *const Compressed,
    buffer: []u8,
) Fault!void {
    if (what.skip > what.unit_size or buffer.len > what.unit_size - what.skip)
        return error.DataDamaged;
    const slot = unpacker.claim(layer, what);
    defer slot.is_busy.store(false, .release);
    if (!slot.has(layer, what)) {
        slot.unit_size = 0;
        try unpacker.fill(slot, file, what);
        slot.layer = layer;
        slot.location = what.location;
        slot.unit_size = what.unit_size;
    }
    @memcpy(buffer, slot.unit[what.skip..][0..buffer.len]);
}

/// Prefers the slot that has the unit. There are more slots than threads, so that one is free.
fn claim(unpacker: *Unpacker, layer: usize, what: *const Compressed) *Slot {
    while (true) {
        for ([_]bool{ true, false }) |is_choosy| for (&unpacker.slots) |*slot| {
            if (slot.is_busy.cmpxchgStrong(false, true, .acquire, .monotonic) != null) continue;
            if (!is_choosy or slot.has(layer, what)) return slot;
            slot.is_busy.store(false, .release);
        };
        std.atomic.spinLoopHint();
    }
}

fn fill(unpacker: *Unpacker, slot: *Slot, file: *const File, what: *const Compressed) Fault!void {
    // What cannot be packed is stored as it is; more than twice its size is no packed unit.
    if (what.size == 0 or what.size > @as(u64, what.unit_size) * 2) return error.DataDamaged;
    // The last unit's sectors may end behind the file.
    if (what.location >= file.size) return error.Truncated;
    const size: usize = @intCast(@min(what.size, file.size - what.location));
    const packed_bytes = try unpacker.atLeast(&slot.packed_bytes, size);
    try file.read(packed_bytes, what.location);
    const unit = try unpacker.atLeast(&slot.unit, what.unit_size);
    const window = try unpacker.atLeast(&slot.window, switch (what.codec) {
        .deflate, .zlib => flate.max_window_len,
        .zstd => zstd_window_size + zstd.block_size_max,
    });
    var input: std.Io.Reader = .fixed(packed_bytes);
    switch (what.codec) {
        .deflate, .zlib => {
            const container: flate.Container = if (what.codec == .zlib) .zlib else .raw;
            var decompress: flate.Decompress = .init(&input, container, window);
            decompress.reader.readSliceAll(unit) catch return error.DataDamaged;
        },
        .zstd => {
            var decompress: zstd.Decompress =
                .init(&input, window, .{ .window_len = zstd_window_size });
            decompress.reader.readSliceAll(unit) catch return error.DataDamaged;
        },
    }
}

/// Returns the first `size` bytes of a buffer that grows as needed.
fn atLeast(unpacker: *Unpacker, buffer: *[]u8, size: usize) Allocator.Error![]u8 {
    if (buffer.len < size) {
        unpacker.gpa.free(buffer.*);
        buffer.* = &.{};
        buffer.* = try unpacker.gpa.alloc(u8, size);
    }
    return buffer.*[0..size];
}

const testing = std.testing;

test "a unit is unpacked once and read in parts, and damage is found" {
    // "bootfarm" twice, by Python's zlib.compressobj(9, zlib.DEFLATED, -15).
    const deflated = "\x4b\xca\xcf\x2f\x49\x4b\x2c\xca\x4d\x82\xd2\x00";
    var memory: File.MemoryFile = .{ .bytes = "...." ++ deflated };
    const file: File = .init(memory.source());
    var unpacker: Unpacker = .init(testing.allocator);
    defer unpacker.deinit();
    var what: Compressed = .{
        .codec = .deflate,
        .location = 4,
        // Ends behind the file.
        .size = 32,
        .unit_size = 16,
        .skip = 8,
    };
    var buffer: [8]u8 = undefined;
    try unpacker.read(&file, 0, &what, &buffer);
    try testing.expectEqualStrings("bootfarm", &buffer);
    memory.bytes = "";
    try unpacker.read(&file, 0, &what, &buffer);
    try testing.expectError(error.Truncated, unpacker.read(&file, 1, &what, &buffer));
    memory.bytes = &@as([16]u8, @splat(0xff));
    try testing.expectError(error.DataDamaged, unpacker.read(&file, 1, &what, &buffer));
    what.size = 33;
    try testing.expectError(error.DataDamaged, unpacker.read(&file, 1, &what, &buffer));
}
