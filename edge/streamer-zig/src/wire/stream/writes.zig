//! WRITE, CONTROL and WRITE_ACK of the stream (packages/proto/STREAM.md, "Writes"): bodies behind
//! the header, which `stream.zig` parses.

const std = @import("std");
const assert = std.debug.assert;
const ParseError = @import("stream.zig").ParseError;

const header_size = 16;
/// Bytes in front of a fragment's payload.
const write_size_fixed = 40;
pub const control_size = 40;
pub const write_ack_size_min = 20;
/// Longest WRITE, in bytes.
pub const write_size_max = 128 << 10;
/// Longest discard, in bytes.
pub const discard_size_max = 64 << 20;
const sector_size = 512;
/// A device's packet fits Ethernet's MTU, whatever the fragment size of reads is.
const packet_size_max = header_size + fragment_size_max;
const fragment_size_max = 1440;
/// Extra bytes of a packet compared with DATA of the same packet size.
const overhead = write_size_fixed - header_size;
const payload_size_min = 512 - overhead;
pub const fragments_max = std.math.divCeil(comptime_int, write_size_max, payload_size_min) catch
    unreachable;
pub const missing_size_max = (fragments_max + 7) / 8;
pub const write_ack_size_max = write_ack_size_min + missing_size_max;
/// Requests whose end a device does not know lie within this many consecutive ids.
pub const window = 64;

comptime {
    assert(fragments_max == 269);
    // An answer is shorter than the shortest request.
    assert(write_ack_size_min < control_size);
    assert(@sizeOf(Layout) == control_size);
}

/// A fragment of a write: each one names the range of the whole write.
pub const Write = struct {
    version_tag: u64,
    /// Bytes; a multiple of 512.
    offset: u64,
    /// Bytes of the whole write; a multiple of 512, 1 to `write_size_max`.
    length: u32,
    /// 0 the first time.
    attempt: u16 = 0,
    /// As in reads: the payload of all fragments but the last is `payloadSize` of it. 512 to 1440.
    fragment_size: u16,
    /// Fragment of the write, from 0.
    index: u16,
    payload: []const u8,
};

pub const Operation = enum(u8) { flush = 1, discard = 2 };

pub const Control = struct {
    version_tag: u64,
    operation: Operation,
    /// Bytes, multiples of 512; both 0 in a flush.
    offset: u64 = 0,
    length: u32 = 0,
    /// 0 the first time.
    attempt: u16 = 0,
};

pub const WriteCode = enum(u16) {
    /// It is executed, and as durable as the write cache's class promises.
    done = 0,
    /// The fragments of `missing` have not arrived.
    missing = 1,
    /// The write cache is full; nothing was written, and nothing will be until the device restarts.
    cache_full = 2,
    /// The write cache is lost; nothing is written or read any more.
    cache_lost = 3,
    beyond_the_end = 4,
    version_mismatch = 5,
    /// The device has no write cache at this edge.
    no_cache = 6,
    /// The write cache is full, and the device's policy is to stop: its disk is stopped from now
    /// on.
    stopped = 7,
    /// The packet has arrived and the request has not ended: it is being executed, or must be
    /// retransmitted later.
    not_yet = 8,
};

pub const WriteAck = struct {
    code: WriteCode,
    /// Bit i % 8 of byte i / 8: fragment i is missing. Empty except with code `missing`.
    missing: []const u8 = "",

    pub fn isMissing(ack: *const WriteAck, index: u16) bool {
        return index / 8 < ack.missing.len and
            ack.missing[index / 8] >> @intCast(index % 8) & 1 == 1;
    }
};

/// Payload of all fragments of a write but the last.
pub fn payloadSize(fragment_size: u16) u16 {
    return @min(fragment_size, fragment_size_max) - overhead;
}

/// Fragments of a write of `length` bytes.
pub fn fragmentCount(length: u32, fragment_size: u16) u16 {
    assert(length > 0 and length <= write_size_max);
    return @intCast(std.math.divCeil(u32, length, payloadSize(fragment_size)) catch unreachable);
}

/// Bytes of fragment `index` of a write of `length` bytes.
pub fn fragmentLength(length: u32, fragment_size: u16, index: u16) u16 {
    const begin = @as(u32, index) * payloadSize(fragment_size);
    assert(begin < length);
    return @intCast(@min(payloadSize(fragment_size), length - begin));
}

/// WRITE's payload is empty here: both packets start the same. `choice` is a write's fragment size,
/// or a control's operation and 0.
const Layout = extern struct {
    header: [header_size]u8,
    version_tag: [8]u8,
    offset: [8]u8,
    length: [4]u8,
    choice: [2]u8,
    attempt: [2]u8,
};

pub fn parseWrite(bytes: []const u8) ParseError!Write {
    if (bytes.len <= write_size_fixed or bytes.len > packet_size_max) return error.WrongSize;
    const layout: *const Layout = @ptrCast(bytes[0..control_size]);
    const write: Write = .{
        .version_tag = std.mem.readInt(u64, &layout.version_tag, .big),
        .offset = std.mem.readInt(u64, &layout.offset, .big),
        .length = std.mem.readInt(u32, &layout.length, .big),
        .attempt = std.mem.readInt(u16, &layout.attempt, .big),
        .fragment_size = std.mem.readInt(u16, &layout.choice, .big),
        .index = std.mem.readInt(u16, bytes[2..4], .big),
        .payload = bytes[write_size_fixed..],
    };
    if (write.fragment_size < sector_size or write.fragment_size > fragment_size_max)
        return error.BadValue;
    if (write.length == 0 or write.length > write_size_max) return error.BadValue;
    if (write.length % sector_size != 0 or write.offset % sector_size != 0) return error.BadValue;
    if (write.index >= fragments_max) return error.BadValue;
    return write;
}

pub fn parseControl(bytes: []const u8) ParseError!Control {
    if (bytes.len != control_size) return error.WrongSize;
    const layout: *const Layout = @ptrCast(bytes[0..control_size]);
    if (layout.choice[1] != 0) return error.ReservedNotZero;
    const control: Control = .{
        .version_tag = std.mem.readInt(u64, &layout.version_tag, .big),
        .operation = std.enums.fromInt(Operation, layout.choice[0]) orelse return error.BadValue,
        .offset = std.mem.readInt(u64, &layout.offset, .big),
        .length = std.mem.readInt(u32, &layout.length, .big),
        .attempt = std.mem.readInt(u16, &layout.attempt, .big),
    };
    switch (control.operation) {
        .flush => if (control.offset != 0 or control.length != 0) return error.ReservedNotZero,
        .discard => {
            if (control.length == 0 or control.length > discard_size_max) return error.BadValue;
            if (control.length % sector_size != 0 or control.offset % sector_size != 0)
                return error.BadValue;
        },
    }
    return control;
}

pub fn parseWriteAck(bytes: []const u8) ParseError!WriteAck {
    if (bytes.len < write_ack_size_min or bytes.len > write_ack_size_max) return error.WrongSize;
    const code = std.enums.fromInt(WriteCode, std.mem.readInt(u16, bytes[16..18], .big)) orelse
        return error.BadValue;
    if (bytes[18] != 0 or bytes[19] != 0) return error.ReservedNotZero;
    const missing = bytes[write_ack_size_min..];
    if ((code == .missing) != (missing.len > 0)) return error.WrongSize;
    if (code == .missing and std.mem.allEqual(u8, missing, 0)) return error.BadValue;
    return .{ .code = code, .missing = missing };
}

/// The header is written already but for its index.
pub fn emitWrite(write: Write, out: []u8) []u8 {
    assert(write.payload.len > 0);
    std.mem.writeInt(u16, out[2..4], write.index, .big);
    emitFixed(out, .{
        .version_tag = write.version_tag,
        .offset = write.offset,
        .length = write.length,
        .choice = write.fragment_size,
        .attempt = write.attempt,
    });
    @memcpy(out[write_size_fixed..][0..write.payload.len], write.payload);
    return out[0 .. write_size_fixed + write.payload.len];
}

pub fn emitControl(control: Control, out: []u8) []u8 {
    emitFixed(out, .{
        .version_tag = control.version_tag,
        .offset = control.offset,
        .length = control.length,
        .choice = @as(u16, @backingInt(control.operation)) << 8,
        .attempt = control.attempt,
    });
    return out[0..control_size];
}

pub fn emitWriteAck(ack: WriteAck, out: []u8) []u8 {
    assert((ack.code == .missing) == (ack.missing.len > 0));
    std.mem.writeInt(u16, out[16..18], @backingInt(ack.code), .big);
    out[18] = 0;
    out[19] = 0;
    @memcpy(out[write_ack_size_min..][0..ack.missing.len], ack.missing);
    return out[0 .. write_ack_size_min + ack.missing.len];
}

const Fixed = struct { version_tag: u64, offset: u64, length: u32, choice: u16, attempt: u16 };

fn emitFixed(out: []u8, fixed: Fixed) void {
    const layout: *Layout = @ptrCast(out[0..control_size]);
    std.mem.writeInt(u64, &layout.version_tag, fixed.version_tag, .big);
    std.mem.writeInt(u64, &layout.offset, fixed.offset, .big);
    std.mem.writeInt(u32, &layout.length, fixed.length, .big);
    std.mem.writeInt(u16, &layout.choice, fixed.choice, .big);
    std.mem.writeInt(u16, &layout.attempt, fixed.attempt, .big);
}
