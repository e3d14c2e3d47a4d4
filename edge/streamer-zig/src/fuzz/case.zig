//! One case of the fuzzer: its random numbers, its memory, and the bytes generated from them. A
//! case depends only on the seed, the target and its own number, so it can be run again alone.

const std = @import("std");
const base = @import("base");

/// A guarantee does not hold; it was printed already.
pub const Violation = error{Violation};

pub const Case = struct {
    prng: base.Prng,
    /// Emptied before each case; exhausting it is a violation.
    gpa: std.mem.Allocator,
    /// The target uses a mutated parser.
    is_canary: bool,

    /// Up to `buffer.len` bytes without any structure.
    pub fn garbage(case: *Case, buffer: []u8) []u8 {
        const size: usize = @intCast(case.prng.between(0, buffer.len));
        case.prng.fill(buffer[0..size]);
        return buffer[0..size];
    }

    /// Damages a packet of `size` bytes at the start of `buffer`, in one to eight places.
    pub fn mutate(case: *Case, buffer: []u8, size: usize) []u8 {
        var left = size;
        const prng = &case.prng;
        for (0..@intCast(prng.between(1, 8))) |_| left = mutateOnce(prng, buffer, left);
        return buffer[0..left];
    }

    /// Text of printable ASCII, sometimes with other bytes, never with a zero.
    pub fn text(case: *Case, buffer: []u8, size_min: usize) []u8 {
        const size: usize = @intCast(case.prng.between(size_min, buffer.len));
        const is_printable = case.prng.chance(3, 4);
        const first: u8 = if (is_printable) 0x20 else 1;
        const last: u8 = if (is_printable) 0x7e else 255;
        for (buffer[0..size]) |*char| char.* = @intCast(case.prng.between(first, last));
        return buffer[0..size];
    }

    /// Returns one of the values, or null.
    pub fn maybe(case: *Case, value: anytype) ?@TypeOf(value) {
        return if (case.prng.chance(1, 2)) value else null;
    }

    pub fn byte(case: *Case) u8 {
        return @truncate(case.prng.nextU32());
    }

    pub fn number(case: *Case) u16 {
        return @truncate(case.prng.nextU32());
    }

    pub fn ip(case: *Case) base.Ip4 {
        return .fromInt(case.prng.nextU32());
    }
};

/// Values that break lengths and signs.
const interesting = [_]u8{ 0, 1, 2, 0x7f, 0x80, 0xfe, 0xff };

fn mutateOnce(prng: *base.Prng, buffer: []u8, size: usize) usize {
    if (size == 0) return grow(prng, buffer, size);
    const at: usize = @intCast(prng.below(size));
    switch (prng.below(7)) {
        0 => buffer[at] ^= @as(u8, 1) << @intCast(prng.below(8)),
        1 => buffer[at] = prng.pick(u8, &interesting),
        2 => buffer[at] = @truncate(prng.nextU32()),
        3 => return at,
        4 => return grow(prng, buffer, size),
        5 => {
            const removed: usize = @intCast(prng.between(1, @min(size - at, 16)));
            std.mem.copyForwards(u8, buffer[at..], buffer[at + removed .. size]);
            return size - removed;
        },
        6 => {
            const repeated: usize = @intCast(prng.between(1, @min(size - at, 16)));
            if (size + repeated > buffer.len) return size;
            std.mem.copyBackwards(u8, buffer[at + repeated ..], buffer[at..size]);
            return size + repeated;
        },
        else => unreachable,
    }
    return size;
}

fn grow(prng: *base.Prng, buffer: []u8, size: usize) usize {
    const room = buffer.len - size;
    if (room == 0) return size;
    const more: usize = @intCast(prng.between(1, @min(room, 64)));
    prng.fill(buffer[size..][0..more]);
    return size + more;
}

/// Ends the case if a guarantee does not hold.
pub fn expect(holds: bool, comptime guarantee: []const u8) Violation!void {
    if (!holds) return violated(guarantee);
}

pub fn violated(comptime guarantee: []const u8) Violation {
    std.debug.print("violated: " ++ guarantee ++ "\n", .{});
    return error.Violation;
}

pub fn expectEqual(
    want: anytype,
    got: @TypeOf(want),
    comptime guarantee: []const u8,
) Violation!void {
    std.testing.expectEqualDeep(want, got) catch return violated(guarantee);
}

/// Checks that a returned slice is within the parsed bytes.
pub fn expectWithin(inner: []const u8, outer: []const u8) Violation!void {
    if (inner.len == 0) return;
    const begin = @intFromPtr(inner.ptr);
    const outer_begin = @intFromPtr(outer.ptr);
    const is_within = begin >= outer_begin and begin + inner.len <= outer_begin + outer.len;
    try expect(is_within, "a slice of a parsed packet lies within the packet");
}
