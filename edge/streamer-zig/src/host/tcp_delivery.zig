//! What the kernel knows of the bytes that were handed over to a TCP connection: how many are not
//! acknowledged yet, when the acknowledgement of the last one arrived, and what was counted.
//! Linux: Documentation/networking/timestamping.rst, tcp(7).

const std = @import("std");
const sys = @import("sys.zig");
const linux = std.os.linux;

/// Since the connection began.
pub const Counters = struct { segments_in: u64 = 0, segments_out: u64 = 0, retransmitted: u64 = 0 };

/// Offsets of struct tcp_info (linux/tcp.h); it only ever grows at its end.
const Info = struct {
    bytes: [148]u8 align(8) = undefined,

    const last_ack_received_ms = 56;
    const retransmitted = 100;
    const segments_out = 136;
    const segments_in = 140;
    const unsent_size = 144;

    fn of(fd: i32) ?Info {
        var info: Info = .{};
        var size: linux.socklen_t = info.bytes.len;
        const tcp_info = 11;
        _ = sys.check(
            linux.getsockopt(fd, linux.IPPROTO.TCP, tcp_info, &info.bytes, &size),
        ) catch return null;
        return if (size < info.bytes.len) null else info;
    }

    fn number(info: *const Info, comptime offset: usize) u32 {
        return std.mem.readInt(u32, info.bytes[offset..][0..4], .native);
    }
};

pub fn counters(fd: i32) ?Counters {
    const info = Info.of(fd) orelse return null;
    return .{
        .retransmitted = info.number(Info.retransmitted),
        .segments_out = info.number(Info.segments_out),
        .segments_in = info.number(Info.segments_in),
    };
}

/// Bytes that were handed over and are not acknowledged; stays above 0 after a reset.
pub fn unacknowledged(fd: i32) ?u32 {
    var count: i32 = 0;
    _ = sys.check(linux.ioctl(fd, linux.SIOCOUTQ, @intFromPtr(&count))) catch return null;
    return @intCast(@max(count, 0));
}

/// Every byte that was handed over was sent at least once.
pub fn isAllSent(fd: i32) bool {
    const info = Info.of(fd) orelse return false;
    return info.number(Info.unsent_size) == 0;
}

/// The connection was reset, or timed out in the kernel. Asking takes the error away.
pub fn isBroken(fd: i32) bool {
    var problem: i32 = 0;
    var size: linux.socklen_t = @sizeOf(i32);
    _ = sys.check(
        linux.getsockopt(fd, linux.SOL.SOCKET, linux.SO.ERROR, @ptrCast(&problem), &size),
    ) catch return true;
    return problem != 0;
}

/// SOF_TIMESTAMPING_* (linux/net_tstamp.h).
const stamp_of_acknowledgement = 1 << 9;
const stamp_by_software = 1 << 4;
const stamp_without_payload = 1 << 11;

/// Taken in one call; there is one for each send that was noted.
const stamps_max = 64;

/// While it is on, the kernel notes for the last byte of each send when its acknowledgement arrives.
/// False where the kernel does not do it.
pub fn stampAcknowledgements(fd: i32, on: bool) bool {
    const flags: u32 = stamp_of_acknowledgement | stamp_by_software | stamp_without_payload;
    const value: u32 = if (on) flags else 0;
    _ = sys.check(linux.setsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.TIMESTAMPING_OLD,
        @ptrCast(&value),
        @sizeOf(u32),
    )) catch return false;
    return true;
}

/// µs of the monotonic clock at which the latest of the noted acknowledgements arrived; null where
/// none was noted since the last call.
pub fn takeStamp(fd: i32) ?u64 {
    var latest_ns: ?i128 = null;
    // What is more than that is here with the next call.
    for (0..stamps_max) |_| {
        const stamp_ns = nextStampNs(fd) catch break orelse continue;
        latest_ns = @max(latest_ns orelse stamp_ns, stamp_ns);
    }
    return fromWallClock(latest_ns orelse return null, .now());
}

/// Coarser than a stamp (the kernel counts ms here), and of the latest acknowledgement of any byte.
pub fn lastAcknowledgedUs(fd: i32) u64 {
    const now_us = sys.monotonicUs();
    const info = Info.of(fd) orelse return now_us;
    return now_us -| @as(u64, info.number(Info.last_ack_received_ms)) * std.time.us_per_ms;
}

const Clocks = struct {
    monotonic_us: u64,
    wall_ns: i128,

    fn now() Clocks {
        var ts: linux.timespec = undefined;
        _ = linux.clock_gettime(.REALTIME, &ts);
        return .{ .monotonic_us = sys.monotonicUs(), .wall_ns = nanoseconds(ts.sec, ts.nsec) };
    }
};

/// A stamp older than this, or of the future, shows that the wall clock was set meanwhile.
const stamp_age_max_us = 60 * std.time.us_per_s;

fn fromWallClock(stamp_ns: i128, clocks: Clocks) u64 {
    const age_us = @divFloor(clocks.wall_ns - stamp_ns, std.time.ns_per_us);
    if (age_us < 0 or age_us > stamp_age_max_us) return clocks.monotonic_us;
    return clocks.monotonic_us -| @as(u64, @intCast(age_us));
}

fn nanoseconds(seconds: i64, rest_ns: i64) i128 {
    return @as(i128, seconds) * std.time.ns_per_s + rest_ns;
}

/// Room for SCM_TIMESTAMPING (three struct timespec) and for IP_RECVERR (struct sock_extended_err
/// and an address).
const control_size = 256;

/// Null: what was next is no stamp.
fn nextStampNs(fd: i32) error{NothingThere}!?i128 {
    var control: [control_size]u8 align(8) = undefined;
    var nothing: [1]u8 = undefined;
    var vector: [1]std.posix.iovec = .{.{ .base = &nothing, .len = nothing.len }};
    var message: linux.msghdr = .{
        .name = null,
        .namelen = 0,
        .iov = &vector,
        .iovlen = vector.len,
        .control = &control,
        .controllen = control.len,
        .flags = 0,
    };
    const flags = linux.MSG.ERRQUEUE | linux.MSG.DONTWAIT;
    _ = sys.check(linux.recvmsg(fd, &message, flags)) catch return error.NothingThere;
    return stampOfControl(control[0..@min(message.controllen, control.len)]);
}

fn stampOfControl(control: []align(8) const u8) ?i128 {
    const header_size = @sizeOf(linux.cmsghdr);
    const stamp_size = @sizeOf(linux.timespec);
    var rest: []const u8 = control;
    while (rest.len >= header_size) {
        const header = std.mem.bytesToValue(linux.cmsghdr, rest[0..header_size]);
        if (header.len < header_size or header.len > rest.len) return null;
        const content = rest[header_size..header.len];
        const is_stamp = header.level == linux.SOL.SOCKET and
            header.type == linux.SO.TIMESTAMPING_OLD;
        // The first of the three is the one by software.
        if (is_stamp and content.len >= stamp_size) {
            const ts = std.mem.bytesToValue(linux.timespec, content[0..stamp_size]);
            return nanoseconds(ts.sec, ts.nsec);
        }
        rest = rest[@min(std.mem.alignForward(usize, header.len, 8), rest.len)..];
    }
    return null;
}

const testing = std.testing;

test "a stamp of the wall clock becomes an instant of the monotonic clock, and one after the clock was set is now" {
    const clocks: Clocks = .{ .monotonic_us = 5_000_000, .wall_ns = 1_000_000_000_000 };
    try testing.expectEqual(4_999_993, fromWallClock(1_000_000_000_000 - 7_000, clocks));
    try testing.expectEqual(5_000_000, fromWallClock(1_000_000_000_000 + 1, clocks));
    try testing.expectEqual(5_000_000, fromWallClock(0, clocks));
}
