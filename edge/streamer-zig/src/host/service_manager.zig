//! Reports the state of this program to the service manager (sd_notify(3)): one datagram for each
//! change, to the socket that NOTIFY_SOCKET names. Nothing waits for it, and nothing fails without
//! it.

const std = @import("std");
const sys = @import("sys.zig");
const linux = std.os.linux;

pub const ServiceManager = @This();

fd: i32,
address: linux.sockaddr.un,
address_size: u32,

const path_offset = @offsetOf(linux.sockaddr.un, "path");

/// `name` is a path, or `@` and an abstract name. Returns null without a service manager.
pub fn open(name: ?[]const u8) ?ServiceManager {
    const given = name orelse return null;
    var address: linux.sockaddr.un = .{ .path = @splat(0) };
    if (given.len < 2 or given.len > address.path.len) return null;
    if (given[0] != '/' and given[0] != '@') return null;
    @memcpy(address.path[0..given.len], given);
    if (given[0] == '@') address.path[0] = 0;
    const flags = linux.SOCK.DGRAM | linux.SOCK.CLOEXEC | linux.SOCK.NONBLOCK;
    const rc = linux.socket(linux.AF.UNIX, flags, 0);
    return .{
        .fd = @intCast(sys.check(rc) catch return null),
        .address = address,
        .address_size = @intCast(path_offset + given.len),
    };
}

pub fn close(manager: *ServiceManager) void {
    sys.close(manager.fd);
    manager.* = undefined;
}

/// Sends one or more lines `NAME=value`. If the service manager does not receive it, the next
/// report follows.
pub fn notify(manager: *const ServiceManager, text: []const u8) void {
    _ = linux.sendto(
        manager.fd,
        text.ptr,
        text.len,
        linux.MSG.NOSIGNAL,
        @ptrCast(&manager.address),
        manager.address_size,
    );
}

const testing = std.testing;

fn expectTold(name: []const u8) !void {
    var manager = ServiceManager.open(name).?;
    defer manager.close();
    const rc = linux.socket(linux.AF.UNIX, linux.SOCK.DGRAM | linux.SOCK.CLOEXEC, 0);
    const listener: i32 = @intCast(try sys.check(rc));
    defer sys.close(listener);
    _ = try sys.check(linux.bind(listener, @ptrCast(&manager.address), manager.address_size));
    manager.notify("READY=1\nSTATUS=serving");
    var buffer: [64]u8 = undefined;
    const size = try sys.check(linux.recvfrom(listener, &buffer, buffer.len, 0, null, null));
    try testing.expectEqualStrings("READY=1\nSTATUS=serving", buffer[0..size]);
}

test "a service manager is reached through a socket file and through an abstract name" {
    var random: [8]u8 = undefined;
    sys.random(&random);
    var buffer: [108]u8 = undefined;
    try expectTold(try std.mem.print(&buffer, "@bootfarm-test-{x}", .{&random}));
    const path = try std.mem.print(&buffer, "/tmp/bootfarm-test-{x}", .{&random});
    var path_z: [108:0]u8 = @splat(0);
    @memcpy(path_z[0..path.len], path);
    defer _ = linux.unlink(&path_z);
    try expectTold(path);
}

test "without a service manager, or if it is gone, nothing happens" {
    try testing.expect(ServiceManager.open(null) == null);
    try testing.expect(ServiceManager.open("") == null);
    try testing.expect(ServiceManager.open("relative") == null);
    const long: [109]u8 = @splat('/');
    try testing.expect(ServiceManager.open(&long) == null);
    var manager = ServiceManager.open("/nonexistent/notify").?;
    defer manager.close();
    manager.notify("READY=1");
}
