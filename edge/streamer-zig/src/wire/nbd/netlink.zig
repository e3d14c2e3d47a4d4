//! Messages of generic netlink that give the kernel's nbd driver a socket to serve a device from
//! (linux/netlink.h, linux/genetlink.h, linux/nbd-netlink.h). All integers are in the machine's own
//! byte order, as netlink wants them.

const std = @import("std");
const assert = std.debug.assert;

pub const message_size_max = 512;
const family_name = "nbd";

const header_size = 20; // nlmsghdr 16, genlmsghdr 4
const flag_request: u16 = 1;
const flag_acknowledge: u16 = 4;
const type_error: u16 = 2;
const type_controller: u16 = 0x10;
const controller_get_family: u8 = 3;
const controller_family_id: u16 = 1;
const controller_family_name: u16 = 2;
const nbd_connect: u8 = 1;
const nbd_reconfigure: u8 = 3;

const Attribute = enum(u16) {
    index = 1,
    size_bytes = 2,
    block_size_bytes = 3,
    timeout = 4,
    server_flags = 5,
    client_flags = 6,
    sockets = 7,
    dead_connection_timeout = 8,
};
const socket_item: u16 = 1;
const socket_fd: u16 = 1;
const nested_flag: u16 = 1 << 15;

pub const Device = struct {
    /// n of /dev/nbdn; null: a free one, which the driver names.
    index: ?u32,
    size_bytes: u64,
    block_size_bytes: u64,
    server_flags: u64,
    /// How long requests wait for another socket, after the process behind this one has ended.
    dead_connection_timeout_s: u64,
    /// The kernel's end of a stream socket pair.
    socket: i32,
};

/// Requests the number of the driver's message family.
pub fn emitFamilyRequest(buffer: *[message_size_max]u8) []const u8 {
    var message: Message = .init(buffer, type_controller, controller_get_family);
    message.attribute(controller_family_name, family_name ++ "\x00");
    return message.finish();
}

/// Starts a device. Its request timeout is 0: a request waits as long as the edge needs.
pub fn emitConnect(buffer: *[message_size_max]u8, family_id: u16, device: Device) []const u8 {
    assert(device.size_bytes > 0);
    var message: Message = .init(buffer, family_id, nbd_connect);
    if (device.index) |index|
        message.attribute(@backingInt(Attribute.index), std.mem.asBytes(&index));
    message.attribute(@backingInt(Attribute.size_bytes), std.mem.asBytes(&device.size_bytes));
    message.attribute(@backingInt(Attribute.block_size_bytes), std.mem.asBytes(
        &device.block_size_bytes,
    ));
    const never: u64 = 0;
    message.attribute(@backingInt(Attribute.timeout), std.mem.asBytes(&never));
    message.attribute(@backingInt(Attribute.server_flags), std.mem.asBytes(&device.server_flags));
    message.attribute(
        @backingInt(Attribute.dead_connection_timeout),
        std.mem.asBytes(&device.dead_connection_timeout_s),
    );
    message.socket(device.socket);
    return message.finish();
}

/// Gives a device another socket in place of a dead one.
pub fn emitReconfigure(
    buffer: *[message_size_max]u8,
    family_id: u16,
    replacement: struct { index: u32, socket: i32 },
) []const u8 {
    var message: Message = .init(buffer, family_id, nbd_reconfigure);
    message.attribute(@backingInt(Attribute.index), std.mem.asBytes(&replacement.index));
    message.socket(replacement.socket);
    return message.finish();
}

pub const Answer = union(enum) {
    /// The request was executed.
    done,
    /// The device that the driver has chosen; `done` or `failed` follows.
    index: u32,
    /// An errno of the kernel.
    failed: u16,
    family_id: u16,
    /// Another message; wait for the next one.
    other,
};

/// The kernel's answer to one of the requests above.
pub fn parseAnswer(bytes: []const u8) Answer {
    if (bytes.len < header_size) return .other;
    const kind = std.mem.readInt(u16, bytes[4..6], .native);
    if (kind == type_error) {
        const code = std.mem.readInt(i32, bytes[16..20], .native);
        if (code == 0) return .done;
        return .{ .failed = std.math.cast(u16, @abs(code)) orelse std.math.maxInt(u16) };
    }
    if (kind != type_controller) return indexOf(bytes) orelse .other;
    var rest = bytes[header_size..];
    while (rest.len >= 4) {
        const size = std.mem.readInt(u16, rest[0..2], .native);
        if (size < 4 or size > rest.len) return .other;
        const is_id = std.mem.readInt(u16, rest[2..4], .native) == controller_family_id;
        if (is_id and size == 6) return .{ .family_id = std.mem.readInt(u16, rest[4..6], .native) };
        rest = rest[@min(std.mem.alignForward(usize, size, 4), rest.len)..];
    }
    return .other;
}

/// The driver's own message: its answer to `emitConnect`.
fn indexOf(bytes: []const u8) ?Answer {
    if (bytes[16] != nbd_connect or bytes.len < header_size + 8) return null;
    const attribute = bytes[header_size..][0..8];
    if (std.mem.readInt(u16, attribute[0..2], .native) != 8) return null;
    const kind = std.mem.readInt(u16, attribute[2..4], .native);
    if (kind != @backingInt(Attribute.index)) return null;
    return .{ .index = std.mem.readInt(u32, attribute[4..8], .native) };
}

const Message = struct {
    buffer: *[message_size_max]u8,
    size: usize,

    fn init(buffer: *[message_size_max]u8, kind: u16, command: u8) Message {
        @memset(buffer, 0);
        std.mem.writeInt(u16, buffer[4..6], kind, .native);
        std.mem.writeInt(u16, buffer[6..8], flag_request | flag_acknowledge, .native);
        std.mem.writeInt(u32, buffer[8..12], 1, .native); // sequence
        buffer[16] = command;
        buffer[17] = 1; // version of the family
        return .{ .buffer = buffer, .size = header_size };
    }

    fn attribute(message: *Message, kind: u16, value: []const u8) void {
        const at = message.begin(kind);
        @memcpy(message.buffer[message.size..][0..value.len], value);
        message.size += value.len;
        message.end(at);
    }

    fn socket(message: *Message, fd: i32) void {
        const sockets = message.begin(@backingInt(Attribute.sockets) | nested_flag);
        const item = message.begin(socket_item | nested_flag);
        message.attribute(socket_fd, std.mem.asBytes(&fd));
        message.end(item);
        message.end(sockets);
    }

    /// Opens an attribute and returns its position for `end`.
    fn begin(message: *Message, kind: u16) usize {
        const at = message.size;
        std.mem.writeInt(u16, message.buffer[at..][2..4], kind, .native);
        message.size += 4;
        return at;
    }

    fn end(message: *Message, at: usize) void {
        // The length excludes the padding that follows.
        std.mem.writeInt(u16, message.buffer[at..][0..2], @intCast(message.size - at), .native);
        message.size = std.mem.alignForward(usize, message.size, 4);
    }

    fn finish(message: *Message) []const u8 {
        assert(message.size <= message_size_max);
        std.mem.writeInt(u32, message.buffer[0..4], @intCast(message.size), .native);
        return message.buffer[0..message.size];
    }
};

const testing = std.testing;

test "the request for the family has its name, ended by a zero byte and padded" {
    if (@import("builtin").cpu.arch.endian() != .little) return error.SkipZigTest;
    var buffer: [message_size_max]u8 = undefined;
    try testing.expectEqualSlices(u8, &.{
        28, 0, 0, 0, 0x10, 0, 5, 0, 1,   0,   0,   0, 0, 0, 0, 0,
        3,  1, 0, 0, 8,    0, 2, 0, 'n', 'b', 'd', 0,
    }, emitFamilyRequest(&buffer));
}

test "the socket of a device is nested twice" {
    if (@import("builtin").cpu.arch.endian() != .little) return error.SkipZigTest;
    var buffer: [message_size_max]u8 = undefined;
    const message = emitConnect(&buffer, 0x1c, .{
        .index = 0,
        .size_bytes = 1 << 20,
        .block_size_bytes = 512,
        .server_flags = 3,
        .dead_connection_timeout_s = 60,
        .socket = 9,
    });
    try testing.expectEqual(message.len, std.mem.readInt(u32, message[0..4], .little));
    try testing.expectEqualSlices(
        u8,
        &.{ 16, 0, 7, 0x80, 12, 0, 1, 0x80, 8, 0, 1, 0, 9, 0, 0, 0 },
        message[message.len - 16 ..],
    );
}

test "the driver chooses a device where none is named, and names it" {
    if (@import("builtin").cpu.arch.endian() != .little) return error.SkipZigTest;
    var buffer: [message_size_max]u8 = undefined;
    var device: Device = .{
        .index = null,
        .size_bytes = 1 << 20,
        .block_size_bytes = 512,
        .server_flags = 3,
        .dead_connection_timeout_s = 60,
        .socket = 9,
    };
    const unnamed = emitConnect(&buffer, 0x1c, device).len;
    device.index = 7;
    const named = emitConnect(&buffer, 0x1c, device);
    try testing.expectEqual(unnamed + 8, named.len);
    try testing.expectEqualSlices(u8, &.{ 8, 0, 1, 0, 7, 0, 0, 0 }, named[20..28]);
    var answer: [28]u8 = @splat(0);
    answer[4] = 0x1c;
    answer[16] = 1;
    answer[20..28].* = named[20..28].*;
    try testing.expectEqual(Answer{ .index = 7 }, parseAnswer(&answer));
    answer[20] = 7;
    try testing.expectEqual(Answer.other, parseAnswer(&answer));
}

test "another socket for a device names the device and the socket" {
    if (@import("builtin").cpu.arch.endian() != .little) return error.SkipZigTest;
    var buffer: [message_size_max]u8 = undefined;
    const message = emitReconfigure(&buffer, 0x1c, .{ .index = 5, .socket = 9 });
    try testing.expectEqual(3, message[16]);
    try testing.expectEqualSlices(u8, &.{
        8,  0, 1, 0,    5,  0, 0, 0,
        16, 0, 7, 0x80, 12, 0, 1, 0x80,
        8,  0, 1, 0,    9,  0, 0, 0,
    }, message[20..]);
}

test "answers are told apart" {
    if (@import("builtin").cpu.arch.endian() != .little) return error.SkipZigTest;
    var ok: [36]u8 = @splat(0);
    ok[4] = 2;
    try testing.expectEqual(Answer.done, parseAnswer(&ok));
    std.mem.writeInt(i32, ok[16..20], -16, .little);
    try testing.expectEqual(Answer{ .failed = 16 }, parseAnswer(&ok));
    var family: [36]u8 = @splat(0);
    family[4] = 0x10;
    @memcpy(family[20..36], &[_]u8{ 8, 0, 2, 0, 'n', 'b', 'd', 0, 6, 0, 1, 0, 0x1c, 0, 0, 0 });
    try testing.expectEqual(Answer{ .family_id = 0x1c }, parseAnswer(&family));
    family[20] = 3;
    try testing.expectEqual(Answer.other, parseAnswer(&family));
    try testing.expectEqual(Answer.other, parseAnswer("short"));
}
