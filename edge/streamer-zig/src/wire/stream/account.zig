//! The body of the stream's ACCOUNT and ACCOUNT_ACK (packages/proto/STREAM.md): a part of what a
//! device says about its boot once that is over. Part of `stream.zig`, which frames it and gives
//! its guarantees.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

const header_size = 16;
const fixed_size = header_size + 8;
/// Of a part: every path on which the stream works takes it.
pub const part_size_max = 480;
pub const account_size_min = fixed_size + 1;
pub const account_size_max = fixed_size + part_size_max;

pub const Kind = enum(u8) {
    /// The programs that read the disk.
    block_trace = 1,
    /// The units of the init system, with their times.
    units = 2,
};

pub const Account = struct {
    kind: Kind,
    /// From 0.
    part: u16,
    is_last: bool,
    /// 1 to `part_size_max` bytes.
    bytes: []const u8,
};

pub const Error = error{ WrongSize, ReservedNotZero, BadValue };

/// `bytes` is the whole packet.
pub fn parse(bytes: []const u8) Error!Account {
    if (bytes.len < account_size_min or bytes.len > account_size_max) return error.WrongSize;
    if (!std.mem.allEqual(u8, bytes[20..24], 0)) return error.ReservedNotZero;
    if (bytes[17] > 1) return error.BadValue;
    return .{
        .kind = std.enums.fromInt(Kind, bytes[16]) orelse return error.BadValue,
        .is_last = bytes[17] == 1,
        .part = std.mem.readInt(u16, bytes[18..20], .big),
        .bytes = bytes[fixed_size..],
    };
}

/// Writes the packet's body behind its header; returns the whole packet.
pub fn emit(account: Account, out: []u8) []u8 {
    assert(account.bytes.len > 0 and account.bytes.len <= part_size_max);
    out[16] = @backingInt(account.kind);
    out[17] = @intFromBool(account.is_last);
    std.mem.writeInt(u16, out[18..20], account.part, .big);
    @memset(out[20..24], 0);
    @memcpy(out[fixed_size..][0..account.bytes.len], account.bytes);
    return out[0 .. fixed_size + account.bytes.len];
}
