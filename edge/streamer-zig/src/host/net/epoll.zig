//! Waits for sockets: one epoll instance with a token per file descriptor.

const std = @import("std");
const sys = @import("../sys.zig");
const assert = std.debug.assert;
const linux = std.os.linux;

pub const Epoll = @This();

fd: i32,

pub const Interest = enum {
    none,
    read,
    write,
    read_and_write,

    fn pollEvents(interest: Interest) i16 {
        return switch (interest) {
            .none => 0,
            .read => linux.POLL.IN,
            .write => linux.POLL.OUT,
            .read_and_write => linux.POLL.IN | linux.POLL.OUT,
        };
    }

    fn events(interest: Interest) u32 {
        return switch (interest) {
            .none => 0,
            .read => linux.EPOLL.IN | linux.EPOLL.RDHUP,
            .write => linux.EPOLL.OUT,
            .read_and_write => linux.EPOLL.IN | linux.EPOLL.OUT,
        };
    }
};

/// A socket that is not in the instance, but is waited for beside it with poll(2). An epoll
/// instance is notified of every packet that arrives at one of its sockets, and of every packet
/// that a network card has sent, even while its thread is awake; a poller is notified only of
/// the one that ends its sleep. Pays off for the socket that most packets go through.
pub const Busy = struct { fd: i32, interest: Interest = .read, token: u64 };

pub fn init() sys.Error!Epoll {
    return .{ .fd = @intCast(try sys.check(linux.epoll_create1(linux.EPOLL.CLOEXEC))) };
}

pub fn deinit(epoll: *Epoll) void {
    sys.close(epoll.fd);
    epoll.* = undefined;
}

pub fn add(epoll: Epoll, fd: i32, interest: Interest, token: u64) sys.Error!void {
    try epoll.control(linux.EPOLL.CTL_ADD, fd, interest, token);
}

pub fn modify(epoll: Epoll, fd: i32, interest: Interest, token: u64) sys.Error!void {
    try epoll.control(linux.EPOLL.CTL_MOD, fd, interest, token);
}

/// Returns the tokens of what is ready; none after `timeout_ms` or a signal.
pub fn wait(epoll: Epoll, buffer: []u64, timeout_ms: i32) sys.Error![]u64 {
    var events: [64]linux.epoll_event = undefined;
    const most: u32 = @intCast(@min(events.len, buffer.len));
    const count = sys.check(
        linux.epoll_wait(epoll.fd, &events, most, timeout_ms),
    ) catch |err| switch (err) {
        error.Interrupted => return buffer[0..0],
        error.WouldBlock, error.SystemCallFailed => return err,
    };
    for (buffer[0..count], events[0..count]) |*token, event| token.* = event.data.u64;
    return buffer[0..count];
}

/// Does what `wait` does, with a socket beside the instance, whose token comes first. `buffer`
/// has capacity for more than that one.
pub fn waitBeside(epoll: Epoll, busy: *const Busy, buffer: []u64, timeout_ms: i32) sys.Error![]u64 {
    assert(buffer.len > 1);
    var polled: [2]linux.pollfd = .{
        .{ .fd = busy.fd, .events = busy.interest.pollEvents(), .revents = 0 },
        .{ .fd = epoll.fd, .events = linux.POLL.IN, .revents = 0 },
    };
    _ = sys.check(linux.poll(&polled, polled.len, timeout_ms)) catch |err| switch (err) {
        error.Interrupted => return buffer[0..0],
        error.WouldBlock, error.SystemCallFailed => return err,
    };
    // Errors of the socket are reported without being requested, and are cleared by the next
    // receive.
    const is_busy = polled[0].revents != 0;
    if (is_busy) buffer[0] = busy.token;
    const first = @intFromBool(is_busy);
    const others = if (polled[1].revents != 0) try epoll.wait(buffer[first..], 0) else buffer[0..0];
    return buffer[0 .. first + others.len];
}

fn control(epoll: Epoll, operation: u32, fd: i32, interest: Interest, token: u64) sys.Error!void {
    var event: linux.epoll_event = .{ .events = interest.events(), .data = .{ .u64 = token } };
    _ = try sys.check(linux.epoll_ctl(epoll.fd, operation, fd, &event));
}

const testing = std.testing;

test "a busy socket and those of the instance are reported together, and each alone" {
    var epoll: Epoll = try .init();
    defer epoll.deinit();
    var fds: [2]i32 = undefined;
    for (&fds) |*fd|
        fd.* = @intCast(try sys.check(linux.eventfd(0, linux.EFD.NONBLOCK | linux.EFD.CLOEXEC)));
    defer for (fds) |fd| sys.close(fd);
    try epoll.add(fds[1], .read, 7);
    var busy: Epoll.Busy = .{ .fd = fds[0], .token = 5 };
    var buffer: [2]u64 = undefined;
    try testing.expectEqualSlices(u64, &.{}, try epoll.waitBeside(&busy, &buffer, 0));
    const one: u64 = 1;
    _ = linux.write(fds[1], std.mem.asBytes(&one), 8);
    try testing.expectEqualSlices(u64, &.{7}, try epoll.waitBeside(&busy, &buffer, -1));
    _ = linux.write(fds[0], std.mem.asBytes(&one), 8);
    try testing.expectEqualSlices(u64, &.{ 5, 7 }, try epoll.waitBeside(&busy, &buffer, -1));
    var count: u64 = undefined;
    for (fds) |fd| _ = linux.read(fd, @ptrCast(&count), 8);
    // The send buffer has free space, which only a caller that asks is told.
    busy.interest = .read_and_write;
    try testing.expectEqualSlices(u64, &.{5}, try epoll.waitBeside(&busy, &buffer, -1));
}
