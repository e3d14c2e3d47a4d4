//! The transmission phase of NBD as the Linux driver speaks it over its socket: requests and simple
//! replies (https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md, "Transmission
//! phase"). There is no negotiation here: the size and flags of the device are given to the kernel
//! when it takes the socket.

const std = @import("std");
const assert = std.debug.assert;
const Cursor = @import("base").Cursor;
const ByteWriter = @import("base").ByteWriter;

pub const request_size = 28;
pub const reply_size = 16;
const request_magic: u32 = 0x25609513;
const reply_magic: u32 = 0x67446698;

/// Transmission flags, given to the kernel with the size.
pub const flag_has_flags: u16 = 1 << 0;
pub const flag_read_only: u16 = 1 << 1;
pub const flag_send_flush: u16 = 1 << 2;
pub const flag_send_trim: u16 = 1 << 5;
pub const flag_send_write_zeroes: u16 = 1 << 6;

pub const Command = enum(u16) {
    read = 0,
    write = 1,
    disconnect = 2,
    flush = 3,
    trim = 4,
    cache = 5,
    write_zeroes = 6,
    _,
};

/// The only error values that the protocol has; the kernel turns each into its own errno.
pub const ErrorCode = enum(u32) {
    none = 0,
    not_permitted = 1,
    input_output = 5,
    invalid = 22,
    no_space = 28,
};

pub const Request = struct {
    command: Command,
    flags: u16,
    /// Chosen by the kernel, returned with the reply.
    handle: u64,
    /// Byte offset in the device.
    offset: u64,
    /// Bytes; of a write, the payload that follows the request on the socket.
    length: u32,
};

pub const Reply = struct {
    code: ErrorCode,
    handle: u64,
};

/// A request without the magic number means that both sides are out of sync.
pub fn parseRequest(bytes: *const [request_size]u8) error{BadMagic}!Request {
    var cursor: Cursor = .init(bytes);
    return readRequest(&cursor) catch |reason| switch (reason) {
        error.Truncated => unreachable, // The fields add up to request_size.
        error.BadMagic => error.BadMagic,
    };
}

fn readRequest(cursor: *Cursor) error{ BadMagic, Truncated }!Request {
    if (try cursor.int(u32) != request_magic) return error.BadMagic;
    const request: Request = .{
        .flags = try cursor.int(u16),
        .command = @fromBackingInt(try cursor.int(u16)),
        .handle = try cursor.int(u64),
        .offset = try cursor.int(u64),
        .length = try cursor.int(u32),
    };
    assert(cursor.remaining() == 0);
    return request;
}

pub fn emitReply(reply: Reply) [reply_size]u8 {
    var bytes: [reply_size]u8 = undefined;
    std.mem.writeInt(u32, bytes[0..4], reply_magic, .big);
    std.mem.writeInt(u32, bytes[4..8], @backingInt(reply.code), .big);
    std.mem.writeInt(u64, bytes[8..16], reply.handle, .big);
    return bytes;
}

/// The bytes of a request; the other side of `parseRequest`, for tests.
pub fn emitRequest(request: Request) [request_size]u8 {
    var bytes: [request_size]u8 = undefined;
    var writer: ByteWriter = .init(&bytes);
    writeRequest(&writer, request) catch unreachable; // The fields add up to request_size.
    return bytes;
}

fn writeRequest(writer: *ByteWriter, request: Request) ByteWriter.Error!void {
    try writer.int(u32, request_magic);
    try writer.int(u16, request.flags);
    try writer.int(u16, @backingInt(request.command));
    try writer.int(u64, request.handle);
    try writer.int(u64, request.offset);
    try writer.int(u32, request.length);
    assert(writer.remaining() == 0);
}

const testing = std.testing;

test "a request of the Linux driver is parsed field by field" {
    const bytes = [request_size]u8{
        0x25, 0x60, 0x95, 0x13, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 9,
        0,    0,    0,    1,    0, 0, 2, 0, 0, 2, 0, 0,
    };
    const request = try parseRequest(&bytes);
    try testing.expectEqual(Command.read, request.command);
    try testing.expectEqual(0x0000000700000009, request.handle);
    try testing.expectEqual(0x0000000100000200, request.offset);
    try testing.expectEqual(131072, request.length);
}

test "a request survives its bytes, unknown commands too" {
    const request: Request =
        .{ .command = @fromBackingInt(77), .flags = 1, .handle = 2, .offset = 3, .length = 4 };
    try testing.expectEqual(request, try parseRequest(&emitRequest(request)));
}

test "bytes that are not a request are refused" {
    var bytes =
        emitRequest(.{ .command = .flush, .flags = 0, .handle = 1, .offset = 0, .length = 0 });
    bytes[3] = 0x12;
    try testing.expectError(error.BadMagic, parseRequest(&bytes));
}

test "a reply carries the request's handle and the error" {
    try testing.expectEqualSlices(
        u8,
        &.{ 0x67, 0x44, 0x66, 0x98, 0, 0, 0, 1, 0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef },
        &emitReply(.{ .code = .not_permitted, .handle = 0xdeadbeef }),
    );
}
