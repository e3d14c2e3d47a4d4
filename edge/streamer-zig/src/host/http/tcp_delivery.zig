//! Asks the kernel about the bytes that were handed to a TCP connection: how many are not
//! acknowledged yet, when the acknowledgement of the last one arrived, and its counters. Linux:
//! Documentation/networking/timestamping.rst, tcp(7).

const std = @import("std");
const kernel_stamp = @import("../net/kernel_stamp.zig");
const sys = @import("../sys.zig");
const linux = std.os.linux;

/// Since the connection began.
pub const Counters = struct { segments_in: u64 = 0, segments_out: u64 = 0, retransmitted: u64 = 0 };

/// Offsets in struct tcp_info (linux/tcp.h), which only grows at its end.
const Info = struct {
    bytes: [148]u8 align(8) = undefined,

    const segment_size = 16;
    const last_ack_received_ms = 56;
    const retransmitted = 100;
    const segments_out = 136;
    const segments_in = 140;
    const unsent_size = 144;

    fn of(fd: i32) ?Info {
        var info: Info = .{};
        var size: linux.socklen_t = info.bytes.len;
        const tcp_info = 11;
        _ = sys.check(linux.getsockopt(fd, linux.IPPROTO.TCP, tcp_info, &info.bytes, &size)) catch
            return null;
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

/// Returns the bytes that were handed over but are not acknowledged; stays above 0 after a reset.
pub fn unacknowledged(fd: i32) ?u32 {
    var count: i32 = 0;
    _ = sys.check(linux.ioctl(fd, linux.SIOCOUTQ, @intFromPtr(&count))) catch return null;
    return @intCast(@max(count, 0));
}

/// Returns whether every byte was sent at least once.
pub fn isAllSent(fd: i32) bool {
    const info = Info.of(fd) orelse return false;
    return info.number(Info.unsent_size) == 0;
}

/// A client that has every byte acknowledges at least every second segment (RFC 9293, 3.8.6.3): no
/// more than this can be missing when it resets the connection.
pub fn mayHaveAll(fd: i32, unacknowledged_size: u32) bool {
    const info = Info.of(fd) orelse return false;
    return info.number(Info.unsent_size) == 0 and
        unacknowledged_size <= 2 * @as(u64, info.number(Info.segment_size));
}

/// Returns whether the connection was reset, or timed out in the kernel. The call clears the error.
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

/// Read in one call; there is one for each watched send.
const stamps_max = 64;

/// While it is on, the kernel records for the last byte of each send when its acknowledgement
/// arrived. Returns false if the kernel does not support it.
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

/// Returns when the latest of the recorded acknowledgements arrived, in µs of the monotonic clock;
/// null if none was recorded since the last call.
pub fn takeStamp(fd: i32) ?u64 {
    var latest_ns: ?i128 = null;
    // Further ones come with the next call.
    for (0..stamps_max) |_| {
        const stamp_ns = nextStampNs(fd) catch break orelse continue;
        latest_ns = @max(latest_ns orelse stamp_ns, stamp_ns);
    }
    return kernel_stamp.Clocks.now().monotonicOf(latest_ns orelse return null);
}

/// Reads what has arrived; sets `arrived_us` to the instant at which the last of it arrived, on
/// sockets whose packets are stamped, else to now. 0: the client sends no more.
pub fn receive(fd: i32, buffer: []u8, arrived_us: *u64) sys.Error!usize {
    var control: [kernel_stamp.control_size]u8 align(8) = undefined;
    var vector: [1]std.posix.iovec = .{.{ .base = buffer.ptr, .len = buffer.len }};
    var message: linux.msghdr = .{
        .name = null,
        .namelen = 0,
        .iov = &vector,
        .iovlen = vector.len,
        .control = &control,
        .controllen = control.len,
        .flags = 0,
    };
    const count = try sys.check(linux.recvmsg(fd, &message, 0));
    const clocks: kernel_stamp.Clocks = .now();
    const stamp = kernel_stamp.find(
        control[0..@min(message.controllen, control.len)],
        kernel_stamp.each_packet,
    );
    arrived_us.* = if (stamp) |stamp_ns| clocks.monotonicOf(stamp_ns) else clocks.monotonic_us;
    return count;
}

/// Returns when the latest acknowledgement of any byte arrived, also after a reset. Less exact than
/// a stamp: the kernel tells how many ticks of its timer ago it was, and the middle of that tick is
/// used. Since Linux 6.4, ticks begin at multiples of their length on the monotonic clock; before,
/// this is less exact by up to a tick.
pub fn lastAcknowledgedUs(fd: i32) u64 {
    const tick_us = sys.tickUs();
    var looks: u8 = looks_max;
    while (true) {
        looks -= 1;
        const now_us = sys.monotonicUs();
        const info = Info.of(fd) orelse return now_us;
        // A tick in between may be counted in one and not in the other.
        if (sys.monotonicUs() / tick_us != now_us / tick_us and looks > 0) continue;
        const age_us = @as(u64, info.number(Info.last_ack_received_ms)) * std.time.us_per_ms;
        const tick_began_us = now_us - now_us % tick_us;
        return @min(now_us, (tick_began_us + tick_us / 2) -| age_us);
    }
}

const looks_max = 4;

/// Enough for SCM_TIMESTAMPING (three struct timespec) and for IP_RECVERR (struct sock_extended_err
/// and an address).
const control_size = 256;

/// Returns null if the next message is not a stamp.
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
    // The first of the three is the software stamp.
    return kernel_stamp.find(
        control[0..@min(message.controllen, control.len)],
        linux.SO.TIMESTAMPING_OLD,
    );
}
