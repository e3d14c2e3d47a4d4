//! Which sockets have something: one epoll instance with a token per file descriptor.

const std = @import("std");
const sys = @import("sys.zig");
const linux = std.os.linux;

pub const Epoll = struct {
    fd: i32,

    pub const Interest = enum {
        none,
        read,
        write,
        read_and_write,

        fn events(interest: Interest) u32 {
            return switch (interest) {
                .none => 0,
                .read => linux.EPOLL.IN | linux.EPOLL.RDHUP,
                .write => linux.EPOLL.OUT,
                .read_and_write => linux.EPOLL.IN | linux.EPOLL.OUT,
            };
        }
    };

    pub const Ready = struct { token: u64 };

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

    /// Tokens of what is ready; none when `timeout_ms` has passed or a signal came.
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

    fn control(
        epoll: Epoll,
        operation: u32,
        fd: i32,
        interest: Interest,
        token: u64,
    ) sys.Error!void {
        var event: linux.epoll_event = .{ .events = interest.events(), .data = .{ .u64 = token } };
        _ = try sys.check(linux.epoll_ctl(epoll.fd, operation, fd, &event));
    }
};
