//! Time stamps that the kernel gives packets: found in control messages (cmsg(3)) and converted
//! from the wall clock to the monotonic clock. Linux: Documentation/networking/timestamping.rst.

const std = @import("std");
const sockets = @import("sockets.zig");
const sys = @import("../sys.zig");
const linux = std.os.linux;

/// SO_TIMESTAMPNS_OLD (asm-generic/socket.h): each packet comes with a struct timespec.
pub const each_packet = 35;
pub const control_size =
    std.mem.alignForward(usize, @sizeOf(linux.cmsghdr) + @sizeOf(linux.timespec), 8);

/// Both clocks at the same instant.
pub const Clocks = struct {
    monotonic_us: u64,
    wall_ns: i128,

    /// Repeats if the process was interrupted between its two looks at the clocks.
    pub fn now() Clocks {
        var tries: u8 = looks_max;
        while (true) {
            tries -= 1;
            var ts: linux.timespec = undefined;
            const before_us = sys.monotonicUs();
            _ = linux.clock_gettime(.REALTIME, &ts);
            const is_instant = sys.monotonicUs() - before_us <= instant_us;
            if (is_instant or tries == 0)
                return .{ .monotonic_us = before_us, .wall_ns = nanoseconds(ts) };
        }
    }

    const looks_max = 4;
    const instant_us = 20;

    /// A stamp older than this, or in the future, shows that the wall clock was set in the
    /// meantime.
    const stamp_age_max_us = 60 * std.time.us_per_s;

    /// In µs of the monotonic clock; now if the wall clock was set after the stamp.
    pub fn monotonicOf(clocks: Clocks, stamp_ns: i128) u64 {
        const age_us = @divFloor(clocks.wall_ns - stamp_ns, std.time.ns_per_us);
        if (age_us < 0 or age_us > stamp_age_max_us) return clocks.monotonic_us;
        return clocks.monotonic_us -| @as(u64, @intCast(age_us));
    }
};

/// Stamps packets that arrive at this socket; without, they count as arrived when they are read.
pub fn stampPackets(fd: i32) void {
    sockets.setInt(fd, linux.SOL.SOCKET, each_packet, 1) catch {};
}

/// Returns the stamp in the first control message of this kind, in ns of the wall clock.
pub fn find(control: []const u8, kind: i32) ?i128 {
    const header_size = @sizeOf(linux.cmsghdr);
    const stamp_size = @sizeOf(linux.timespec);
    var rest = control;
    while (rest.len >= header_size) {
        const header = std.mem.bytesToValue(linux.cmsghdr, rest[0..header_size]);
        if (header.len < header_size or header.len > rest.len) return null;
        const content = rest[header_size..header.len];
        const is_stamp = header.level == linux.SOL.SOCKET and header.type == kind;
        if (is_stamp and content.len >= stamp_size)
            return nanoseconds(std.mem.bytesToValue(linux.timespec, content[0..stamp_size]));
        rest = rest[@min(std.mem.alignForward(usize, header.len, 8), rest.len)..];
    }
    return null;
}

fn nanoseconds(ts: linux.timespec) i128 {
    return @as(i128, ts.sec) * std.time.ns_per_s + ts.nsec;
}

const testing = std.testing;

test "a stamp of the wall clock becomes an instant of the monotonic clock, and is now if the clock was set" {
    const clocks: Clocks = .{ .monotonic_us = 5_000_000, .wall_ns = 1_000_000_000_000 };
    try testing.expectEqual(4_999_993, clocks.monotonicOf(1_000_000_000_000 - 7_000));
    try testing.expectEqual(5_000_000, clocks.monotonicOf(1_000_000_000_000 + 1));
    try testing.expectEqual(5_000_000, clocks.monotonicOf(0));
}

test "a stamp is found behind other control messages, and a truncated one is ignored" {
    var control: [64]u8 = @splat(0);
    const header_size = @sizeOf(linux.cmsghdr);
    const other: linux.cmsghdr = .{ .len = header_size + 4, .level = linux.SOL.IP, .type = 8 };
    const stamp: linux.cmsghdr = .{
        .len = header_size + @sizeOf(linux.timespec),
        .level = linux.SOL.SOCKET,
        .type = each_packet,
    };
    const ts: linux.timespec = .{ .sec = 3, .nsec = 5 };
    const second = std.mem.alignForward(usize, other.len, 8);
    @memcpy(control[0..header_size], std.mem.asBytes(&other));
    @memcpy(control[second..][0..header_size], std.mem.asBytes(&stamp));
    @memcpy(control[second + header_size ..][0..@sizeOf(linux.timespec)], std.mem.asBytes(&ts));
    try testing.expectEqual(3_000_000_005, find(&control, each_packet).?);
    try testing.expectEqual(null, find(control[0 .. second + header_size + 8], each_packet));
    try testing.expectEqual(null, find(&control, each_packet + 1));
}
