//! Sockets that an earlier process of this edge has left open for this one (host/exchange.zig), so
//! that what arrives in between waits in the kernel. A socket is taken where this edge wants one of
//! the same kind, address and interface; the others are closed, since the settings have changed.

const std = @import("std");
const base = @import("base");
const sys = @import("../sys.zig");
const sockets = @import("sockets.zig");
const linux = std.os.linux;

/// The environment variable: `PID:FD,FD,...`.
pub const variable = "BOOTFARM_EDGE_SOCKETS";
/// Two for each of sixteen addresses, sixteen shards of the stream, and three more.
pub const count_max = 64;

pub const InheritedSockets = @This();
pub const none: InheritedSockets = .{};

fds: base.BoundedArray(i32, count_max) = .empty,

/// Takes what the variable names for this very process; a program that this edge starts has another
/// number.
pub fn find(text: ?[]const u8) InheritedSockets {
    var found: InheritedSockets = .none;
    var parts = std.mem.splitScalar(u8, text orelse return found, ':');
    const pid = std.fmt.parseInt(i32, parts.first(), 10) catch return found;
    if (pid != linux.getpid()) return found;
    var numbers = std.mem.splitScalar(u8, parts.rest(), ',');
    while (numbers.next()) |number| {
        const fd = std.fmt.parseInt(i32, number, 10) catch continue;
        if (fd <= 2 or !keep(fd, false)) continue;
        found.fds.append(fd) catch sys.close(fd);
    }
    return found;
}

/// Writes the variable, and keeps the sockets open beyond the end of this program.
pub fn leave(fds: []const i32, buffer: []u8) error{NoSpaceLeft}![]const u8 {
    var out: std.Io.Writer = .fixed(buffer);
    out.print("{d}:", .{linux.getpid()}) catch return error.NoSpaceLeft;
    for (fds, 0..) |fd, index| {
        if (index > 0) out.writeByte(',') catch return error.NoSpaceLeft;
        out.print("{d}", .{fd}) catch return error.NoSpaceLeft;
    }
    for (fds) |fd| _ = keep(fd, true);
    return out.buffered();
}

fn keep(fd: i32, is_kept: bool) bool {
    const flags: usize = if (is_kept) 0 else linux.FD_CLOEXEC;
    return linux.errno(linux.fcntl(fd, linux.F.SETFD, flags)) == .SUCCESS;
}

/// Returns a bound UDP socket with these options, if there is one.
pub fn takeUdp(inherited: *InheritedSockets, options: sockets.UdpOptions) ?i32 {
    // The system chooses such a port: any other will do.
    if (options.address.port == 0) return null;
    const name = if (options.interface) |interface| interface.name() else "";
    const fd = inherited.take(linux.SOCK.DGRAM, options.address, name) orelse return null;
    sockets.prepareUdp(fd, options) catch {
        sys.close(fd);
        return null;
    };
    return fd;
}

/// Returns a TCP socket that listens at this address, if there is one.
pub fn takeListener(inherited: *InheritedSockets, address: base.Endpoint) ?i32 {
    return inherited.take(linux.SOCK.STREAM, address, "");
}

/// Counts the sockets of one address.
pub fn countUdp(inherited: *const InheritedSockets, address: base.Endpoint) u32 {
    var count: u32 = 0;
    for (inherited.fds.constSlice()) |fd| {
        if (is(fd, linux.SOCK.DGRAM, address, "")) count += 1;
    }
    return count;
}

/// Closes the sockets of one address.
pub fn closeUdp(inherited: *InheritedSockets, address: base.Endpoint) void {
    while (inherited.take(linux.SOCK.DGRAM, address, "")) |fd| sys.close(fd);
}

/// Closes what was not taken.
pub fn closeRest(inherited: *InheritedSockets) void {
    for (inherited.fds.constSlice()) |fd| sys.close(fd);
    inherited.fds.clear();
}

/// In the order in which they were left: it is that of the stream's shards.
fn take(inherited: *InheritedSockets, kind: u32, address: base.Endpoint, name: []const u8) ?i32 {
    const fds = inherited.fds.slice();
    for (fds, 0..) |fd, index| {
        if (!is(fd, kind, address, name)) continue;
        std.mem.copyForwards(i32, fds[index .. fds.len - 1], fds[index + 1 ..]);
        inherited.fds.count -= 1;
        return fd;
    }
    return null;
}

fn is(fd: i32, kind: u32, address: base.Endpoint, name: []const u8) bool {
    var found: u32 = 0;
    var size: linux.socklen_t = @sizeOf(u32);
    const socket = linux.SOL.SOCKET;
    _ = sys.check(linux.getsockopt(fd, socket, linux.SO.TYPE, @ptrCast(&found), &size)) catch
        return false;
    if (found != kind) return false;
    const bound = sockets.addressOf(fd) catch return false;
    if (!std.meta.eql(bound, address)) return false;
    var device: [linux.IFNAMESIZE]u8 = @splat(0);
    size = device.len;
    _ = sys.check(linux.getsockopt(fd, socket, linux.SO.BINDTODEVICE, &device, &size)) catch
        return false;
    return std.mem.eql(u8, std.mem.sliceTo(&device, 0), name);
}

const testing = std.testing;

const any: base.Endpoint = .{ .ip = .init(127, 0, 0, 1), .port = 0 };

/// Leaves sockets and finds them, as a process does that replaces itself.
fn passOn(fds: []const i32) !InheritedSockets {
    var buffer: [256]u8 = undefined;
    return find(try leave(fds, &buffer));
}

test "a socket is taken over with what waits in it" {
    const fd = try sockets.openUdp(.{ .address = any });
    const address = try sockets.addressOf(fd);
    var inherited = try passOn(&.{fd});
    const sender = try sockets.openUdp(.{ .address = any });
    defer sys.close(sender);
    const to = sockets.toSockaddr(address);
    _ = try sys.check(linux.sendto(sender, "abc", 3, 0, @ptrCast(&to), @sizeOf(linux.sockaddr.in)));
    const taken = inherited.takeUdp(.{ .address = address }).?;
    defer sys.close(taken);
    var bytes: [8]u8 = undefined;
    const size = try sys.check(linux.recvfrom(taken, &bytes, bytes.len, 0, null, null));
    try testing.expectEqualStrings("abc", bytes[0..size]);
    try testing.expectEqual(null, inherited.takeUdp(.{ .address = address }));
}

test "a socket of another kind, address or interface is not taken" {
    const listener = try sockets.openListener(any);
    const address = try sockets.addressOf(listener);
    var inherited = try passOn(&.{listener});
    try testing.expectEqual(null, inherited.takeUdp(.{ .address = address }));
    var other = address;
    other.ip = .init(127, 0, 0, 2);
    try testing.expectEqual(null, inherited.takeListener(other));
    var name: [linux.IFNAMESIZE]u8 = @splat(0);
    name[0] = 'x';
    const interface: sockets.Interface =
        .{ .index = 9, .name_buffer = name, .name_size = 1, .prefix_size = 8 };
    try testing.expectEqual(null, inherited.takeUdp(.{
        .address = address,
        .interface = &interface,
    }));
    inherited.closeRest();
    // It is closed: the address is free again.
    sys.close(try sockets.openListener(address));
}

test "a shared address keeps its order" {
    const first = try sockets.openUdp(.{ .address = any });
    const address = try sockets.addressOf(first);
    try sockets.share(first);
    const second = try sockets.openUdp(.{ .address = address, .is_shared = true });
    var inherited = try passOn(&.{ first, second });
    try testing.expectEqual(2, inherited.countUdp(address));
    try testing.expectEqual(first, inherited.takeUdp(.{ .address = address }).?);
    try testing.expectEqual(second, inherited.takeUdp(.{ .address = address }).?);
    sys.close(first);
    sys.close(second);
}

test "what another process was left, or what is no list, is nothing" {
    for ([_]?[]const u8{ null, "", "x", "1:3", "-1:3" }) |text|
        try testing.expectEqual(0, find(text).fds.count);
    var buffer: [64]u8 = undefined;
    const text = try std.mem.print(&buffer, "{d}:0,2,x,-4,99999", .{linux.getpid()});
    try testing.expectEqual(0, find(text).fds.count);
}
