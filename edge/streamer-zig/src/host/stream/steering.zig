//! Steers packets of the stream to the sockets of its port, as a classic BPF program (socket(7),
//! SO_ATTACH_REUSEPORT_CBPF): a READ of a disk by the mark of its session
//! (packages/proto/STREAM.md, "Threads of an edge"), all else to the first socket. Wrong steering
//! does no harm: a shard forwards what is not its own.

const std = @import("std");
const core = @import("core");
const wire = @import("wire").stream;
const Instruction = @import("../net/packet_filter.zig").Instruction;
const sockets = @import("../net/sockets.zig");
const sys = @import("../sys.zig");
const linux = std.os.linux;

/// linux/bpf_common.h
const load_byte = 0x30;
const load_half = 0x28;
const jump_if_equal = 0x15;
const bits_and = 0x54;
const modulo = 0x94;
const return_constant = 0x06;
const return_accumulator = 0x16;

const so_attach_reuseport_cbpf = 51;

/// Returns the shard of a session with this mark.
pub fn shardOf(mark: u16, shards: u16) u16 {
    return mark % shards;
}

/// Offsets are from the start of the UDP payload; a load beyond its end gives 0, the first socket.
fn program(shards: u16) [9]Instruction {
    return .{
        of(load_byte, 1),
        .{
            .code = jump_if_equal,
            .jump_true = 0,
            .jump_false = 6,
            .k = @backingInt(wire.Type.read),
        },
        of(load_byte, 0),
        of(bits_and, 0x0f),
        .{
            .code = jump_if_equal,
            .jump_true = 3,
            .jump_false = 0,
            .k = @backingInt(wire.ReadKind.profile),
        },
        of(load_half, 8),
        of(modulo, shards),
        of(return_accumulator, 0),
        of(return_constant, 0),
    };
}

fn of(code: u16, k: u32) Instruction {
    return .{ .code = code, .jump_true = 0, .jump_false = 0, .k = k };
}

/// struct sock_fprog.
const SockProgram = extern struct { count: u16, instructions: [*]const Instruction };

/// Attaches the program to a socket that shares its address with `shards - 1` others, opened after
/// it in the order of their shards.
pub fn attach(fd: i32, shards: u16) error{SystemCallFailed}!void {
    const instructions = program(shards);
    const given: SockProgram = .{ .count = instructions.len, .instructions = &instructions };
    const bytes = std.mem.asBytes(&given);
    _ = sys.check(
        linux.setsockopt(fd, linux.SOL.SOCKET, so_attach_reuseport_cbpf, bytes.ptr, bytes.len),
    ) catch
        return error.SystemCallFailed;
}

const testing = std.testing;

test "READs go to the shard of their session's mark, and all else to the first one" {
    const shards = 3;
    const any: @import("base").Endpoint = .{ .ip = .init(127, 0, 0, 1), .port = 0 };
    var fds: [shards]i32 = undefined;
    fds[0] = try sockets.openUdp(.{ .address = any });
    defer sys.close(fds[0]);
    const at = try sockets.addressOf(fds[0]);
    try sockets.share(fds[0]);
    for (fds[1..]) |*fd| fd.* = try sockets.openUdp(.{ .address = at, .is_shared = true });
    defer for (fds[1..]) |fd| sys.close(fd);
    try attach(fds[0], shards);
    // Another program that opens its first socket alone, like this one, finds the port taken.
    try testing.expectError(error.PortInUse, sockets.openUdp(.{ .address = at }));
    const sender = try sockets.openUdp(.{ .address = any });
    defer sys.close(sender);
    const versions = [_]wire.Version{ .v2, .v3 };
    var packets: [9][40]u8 = @splat(@splat(0));
    for (packets[0..6], 0..) |*packet, mark| {
        packet[0..2].* = .{ versions[mark % 2].byte(), @backingInt(wire.Type.read) };
        std.mem.writeInt(u16, packet[8..10], @intCast(mark), .big);
        if (mark >= 3) packet[0] |= @backingInt(wire.ReadKind.ahead);
    }
    for (packets[6..8]) |*packet| std.mem.writeInt(u16, packet[8..10], 1, .big);
    packets[6][0..2].* = .{ wire.Version.v3.byte(), @backingInt(wire.Type.report) };
    packets[7][0..2].* = .{
        wire.Version.v3.byte() | @as(u8, @backingInt(wire.ReadKind.profile)),
        @backingInt(wire.Type.read),
    };
    // Shorter than what the program looks at.
    packets[8][0..2].* = .{ wire.Version.v2.byte(), @backingInt(wire.Type.read) };
    const to = sockets.toSockaddr(at);
    for (&packets, 0..) |*packet, index| {
        const size: usize = if (index == 8) 2 else packet.len;
        _ = try sys.check(
            linux.sendto(sender, packet, size, 0, @ptrCast(&to), @sizeOf(linux.sockaddr.in)),
        );
    }
    // On loopback they have arrived when the sender's call returns.
    var counts: [shards]usize = @splat(0);
    for (fds, &counts, 0..) |fd, *count, shard| {
        var packet: [64]u8 = undefined;
        while (sys.check(
            linux.recvfrom(fd, &packet, packet.len, linux.MSG.DONTWAIT, null, null),
        ) catch null) |size| {
            count.* += 1;
            if (!core.stream.Server.isPlainRead(packet[0..size]))
                try testing.expectEqual(0, shard)
            else
                try testing.expectEqual(
                    shardOf(std.mem.readInt(u16, packet[8..10], .big), shards),
                    shard,
                );
        }
    }
    try testing.expectEqual([_]usize{ 5, 2, 2 }, counts);
}
