//! A part of a disk: the whole disk or one partition. Reads never pass its end.

const std = @import("std");
const store = @import("store");
const BlockSource = store.BlockSource;

pub const ReadError = store.block_source.ReadError || error{
    /// Cyclic tables or directories, or some larger than any system boots from.
    TooMuchWork,
};

/// Reads left; ends every query, whatever the disk says.
pub const ReadBudget = struct { reads_left: u64 };

pub const Volume = struct {
    source: *const BlockSource,
    /// Bytes from the start of the disk.
    first: u64,
    /// Bytes; a size beyond the end of the disk is cut.
    size: u64,
    read_budget: *ReadBudget,

    pub fn whole(source: *const BlockSource, read_budget: *ReadBudget) Volume {
        return .{ .source = source, .first = 0, .size = source.size, .read_budget = read_budget };
    }

    /// Returns the part of `first` and `size` that is on the disk, or null.
    pub fn part(disk: *const Volume, first: u64, size: u64) ?Volume {
        if (first >= disk.size or size == 0) return null;
        return .{
            .source = disk.source,
            .first = disk.first + first,
            .size = @min(size, disk.size - first),
            .read_budget = disk.read_budget,
        };
    }

    /// Fills `buffer` from byte `offset` of the volume, completely or not at all.
    pub fn read(volume: *const Volume, buffer: []u8, offset: u64) ReadError!void {
        if (buffer.len > volume.size or
            offset > volume.size - buffer.len) return error.BeyondTheEnd;
        if (volume.read_budget.reads_left == 0) return error.TooMuchWork;
        volume.read_budget.reads_left -= 1;
        return volume.source.read(buffer, volume.first + offset);
    }

    pub fn readArray(volume: *const Volume, comptime size: usize, offset: u64) ReadError![size]u8 {
        var buffer: [size]u8 = undefined;
        try volume.read(&buffer, offset);
        return buffer;
    }
};

/// Reads a little-endian number of `bytes` at `at`, which is known to be inside.
pub fn int(comptime T: type, bytes: []const u8, at: usize) T {
    return std.mem.readInt(T, bytes[at..][0..@divExact(@bitSizeOf(T), 8)], .little);
}

/// A disk in memory, for tests and the fuzzer; it must not move while it is read.
pub const MemoryDisk = struct {
    bytes: []const u8,

    pub fn source(disk: *MemoryDisk) BlockSource {
        return .{ .context = disk, .vtable = &.{ .read = read }, .size = disk.bytes.len };
    }

    fn read(context: *anyopaque, buffer: []u8, offset: u64) store.block_source.ReadError!void {
        const disk: *MemoryDisk = @ptrCast(@alignCast(context));
        @memcpy(buffer, disk.bytes[@intCast(offset)..][0..buffer.len]);
    }
};

test "reads of a volume stop at the end of its disk" {
    var disk: MemoryDisk = .{ .bytes = &@as([1024]u8, @splat('a')) };
    const source = disk.source();
    var read_budget: ReadBudget = .{ .reads_left = 2 };
    const whole: Volume = .whole(&source, &read_budget);
    const volume = whole.part(512, 4096).?;
    try std.testing.expectEqual(512, volume.size);
    try std.testing.expectEqual(@as([4]u8, @splat('a')), try volume.readArray(4, 508));
    try std.testing.expectError(error.BeyondTheEnd, volume.readArray(4, 509));
    try std.testing.expectError(error.BeyondTheEnd, volume.readArray(4, std.math.maxInt(u64)));
    try std.testing.expectEqual(null, whole.part(1024, 1));
    _ = try volume.readArray(512, 0);
    try std.testing.expectError(error.TooMuchWork, volume.readArray(512, 0));
}
