//! The network card that reaches the edge, for NETWORK (packages/proto/STREAM.md, "What the network
//! does"): its link and its counters, by sysfs(5) and the socket. The folder stays open, because
//! the system moves /sys and may give the card another name. What is not known is left out.

const std = @import("std");
const stream = @import("wire").stream;
const sys = @import("host").sys;
const machine = @import("machine.zig");
const linux = std.os.linux;

pub const NetworkCard = @This();

/// `/sys/class/net/NAME`; -1: nobody knows which card it is.
folder_fd: i32 = -1,

/// `fd` is the connected socket to the edge.
pub fn open(fd: i32) NetworkCard {
    var name: [linux.IFNAMESIZE]u8 = undefined;
    const interface = machine.interfaceOf(fd, &name) orelse return .{};
    var buffer: [64]u8 = undefined;
    const path = std.mem.printSentinel(&buffer, "/sys/class/net/{s}", .{interface}, 0) catch
        return .{};
    const flags: linux.O = .{ .PATH = true, .DIRECTORY = true, .CLOEXEC = true };
    return .{ .folder_fd = @intCast(sys.check(linux.open(path, flags, 0)) catch return .{}) };
}

/// Returns its figures now. Null: nobody knows which card it is.
pub fn read(card: NetworkCard, socket_fd: i32) ?stream.NetworkCard {
    if (card.folder_fd < 0) return null;
    return .{
        .duplex = card.duplex(),
        .mtu = std.math.lossyCast(u16, card.number("mtu")),
        .link_mbit = card.number("speed"),
        .carrier_changes = card.number("carrier_changes"),
        .receive_errors = card.number("statistics/rx_errors"),
        .crc_errors = card.number("statistics/rx_crc_errors"),
        .receive_drops = card.number("statistics/rx_missed_errors") +|
            card.number("statistics/rx_dropped"),
        .send_errors = card.number("statistics/tx_errors"),
        .socket_drops = dropsOf(socket_fd),
    };
}

fn duplex(card: NetworkCard) stream.Duplex {
    var buffer: [32]u8 = undefined;
    const text = card.textOf("duplex", &buffer) orelse return .unknown;
    return if (std.mem.eql(u8, text, "half") or std.mem.eql(u8, text, "full"))
        std.meta.stringToEnum(stream.Duplex, text).?
    else
        .unknown;
}

/// 0 for what is no number from 0 on: a link without a speed has -1.
fn number(card: NetworkCard, file: [*:0]const u8) u32 {
    var buffer: [32]u8 = undefined;
    const text = card.textOf(file, &buffer) orelse return 0;
    const value = std.fmt.parseInt(u64, text, 10) catch return 0;
    return std.math.lossyCast(u32, value);
}

fn textOf(card: NetworkCard, file: [*:0]const u8, buffer: *[32]u8) ?[]const u8 {
    const rc = linux.openat(card.folder_fd, file, .{ .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return null);
    defer sys.close(fd);
    const size = sys.check(linux.read(fd, buffer, buffer.len)) catch return null;
    return std.mem.trim(u8, buffer[0..size], " \n");
}

/// SO_MEMINFO of socket(7): the ninth number is SK_MEMINFO_DROPS.
fn dropsOf(socket_fd: i32) u32 {
    const so_meminfo = 55;
    const drops_index = 8;
    var numbers: [drops_index + 1]u32 = @splat(0);
    var size: linux.socklen_t = @sizeOf(@TypeOf(numbers));
    const into: [*]u8 = @ptrCast(&numbers);
    _ = sys.check(
        linux.getsockopt(socket_fd, linux.SOL.SOCKET, so_meminfo, into, &size),
    ) catch return 0;
    return numbers[drops_index];
}

const testing = std.testing;

fn loopbackSocket() !i32 {
    const rc = linux.socket(linux.AF.INET, linux.SOCK.DGRAM | linux.SOCK.CLOEXEC, 0);
    const fd: i32 = @intCast(try sys.check(rc));
    errdefer sys.close(fd);
    const loopback: linux.sockaddr.in =
        .{ .port = 0, .addr = std.mem.nativeToBig(u32, 0x7f00_0001) };
    _ = try sys.check(linux.bind(fd, @ptrCast(&loopback), @sizeOf(linux.sockaddr.in)));
    return fd;
}

test "the loopback has an MTU and no duplex, and without a card nothing is known" {
    const fd = try loopbackSocket();
    defer sys.close(fd);
    const card: NetworkCard = .open(fd);
    defer sys.close(card.folder_fd);
    const figures = card.read(fd).?;
    try testing.expect(figures.mtu > 0);
    try testing.expectEqual(.unknown, figures.duplex);
    try testing.expectEqual(0, figures.link_mbit);
    try testing.expectEqual(0, figures.socket_drops);
    try testing.expectEqual(null, NetworkCard.open(-1).read(fd));
}

test "datagrams that find a full buffer are counted" {
    const fd = try loopbackSocket();
    defer sys.close(fd);
    const size: i32 = 1;
    try std.posix.setsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.RCVBUF,
        std.mem.asBytes(&size),
    );
    var own: linux.sockaddr.in = undefined;
    var own_size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
    _ = try sys.check(linux.getsockname(fd, @ptrCast(&own), &own_size));
    const datagram: [1400]u8 = @splat(1);
    for (0..50) |_| _ = linux.sendto(
        fd,
        &datagram,
        datagram.len,
        linux.MSG.DONTWAIT,
        @ptrCast(&own),
        own_size,
    );
    try testing.expect(dropsOf(fd) > 10);
}
