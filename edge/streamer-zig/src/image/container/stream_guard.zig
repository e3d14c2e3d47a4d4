//! A stream as a raw disk. Its bytes come once and in order, so that no container can be read from
//! it: this ends the stream with an error if it begins or ends like one.

const std = @import("std");
const signature = @import("signature.zig");
const store = @import("store");
const Format = signature.Format;
const ImageSource = store.image_source.ImageSource;
const ReadError = store.image_source.ReadError;

pub const StreamGuard = @This();

stream: ImageSource,
tail: [signature.tail_size]u8 = undefined,
tail_size: usize = 0,
/// What the stream was recognized as, after a read has failed.
found: ?Format = null,

/// Must not move as long as the source is in use.
pub fn source(guard: *StreamGuard) ImageSource {
    std.debug.assert(!guard.stream.is_positional);
    return .{
        .context = guard,
        .vtable = &.{ .read = read, .nextData = nextData, .now = now },
        .size = guard.stream.size,
        .is_positional = false,
    };
}

fn of(context: *anyopaque) *StreamGuard {
    return @ptrCast(@alignCast(context));
}

fn read(context: *anyopaque, buffer: []u8, offset: u64, failed_at: *u64) ReadError!usize {
    const guard = of(context);
    const count = try guard.stream.read(buffer, offset, failed_at);
    const bytes = buffer[0..count];
    if (offset == 0) guard.found = signature.ofHead(bytes);
    guard.keepTail(bytes);
    // Fewer bytes than wanted are the last ones.
    if (count < buffer.len and guard.found == null)
        guard.found = signature.ofTail(guard.tail[0..guard.tail_size]);
    if (guard.found == null) return count;
    failed_at.* = offset;
    return error.ReadFailed;
}

fn keepTail(guard: *StreamGuard, bytes: []const u8) void {
    const added = bytes[bytes.len - @min(bytes.len, guard.tail.len) ..];
    const kept = @min(guard.tail_size, guard.tail.len - added.len);
    std.mem.copyForwards(
        u8,
        guard.tail[0..kept],
        guard.tail[guard.tail_size - kept .. guard.tail_size],
    );
    @memcpy(guard.tail[kept..][0..added.len], added);
    guard.tail_size = kept + added.len;
}

fn nextData(context: *anyopaque, offset: u64) ?u64 {
    return of(context).stream.nextData(offset);
}

fn now(context: *anyopaque) ?ImageSource.Now {
    return of(context).stream.now();
}

const testing = std.testing;
const MemoryFile = @import("file.zig").MemoryFile;

fn readAll(bytes: []const u8, part_size: usize) !?Format {
    var memory: MemoryFile = .{ .bytes = bytes };
    var stream = memory.source();
    stream.is_positional = false;
    stream.size = null;
    var guard: StreamGuard = .{ .stream = stream };
    const guarded = guard.source();
    var buffer: [4096]u8 = undefined;
    var at: u64 = 0;
    while (true) {
        var failed_at: u64 = 0;
        const part = buffer[0..part_size];
        const count = guarded.read(part, at, &failed_at) catch return guard.found.?;
        try testing.expectEqualSlices(u8, bytes[@intCast(at)..][0..count], part[0..count]);
        at += count;
        if (count < part_size) return null;
    }
}

test "a stream that begins or ends like a container fails, however it is cut" {
    var bytes: [6000]u8 = @splat('.');
    for ([_]usize{ 100, 512, 600, 1500, 3000, 4096 }) |part_size| {
        try testing.expectEqual(null, try readAll(&bytes, part_size));
        var start = bytes;
        start[0..4].* = "QFI\xfb".*;
        try testing.expectEqual(.qcow2, try readAll(&start, part_size));
        var end = bytes;
        end[6000 - 512 ..][0..8].* = "conectix".*;
        try testing.expectEqual(.vhd, try readAll(&end, part_size));
    }
}
