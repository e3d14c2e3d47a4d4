//! The trail of a run: a hash of everything that happened, in order, so that two runs of one seed can be compared; and,
//! when asked for, the same as text. Nothing that differs between processes (addresses, hash tables) may go in.

const std = @import("std");
const base = @import("base");

pub const Trail = @This();

hash: u64 = 0x9e3779b97f4a7c15,
is_traced: bool = false,
/// Packets have a part of their bytes in the hash; the rest follows from them.
const bytes_hashed_max = 64;

pub fn note(trail: *Trail, value: u64) void {
    trail.hash = mix(trail.hash ^ value);
}

pub fn noteBytes(trail: *Trail, bytes: []const u8) void {
    trail.note(bytes.len);
    trail.note(std.hash.Wyhash.hash(trail.hash, bytes[0..@min(bytes.len, bytes_hashed_max)]));
}

pub fn print(trail: *const Trail, now_us: u64, comptime format: []const u8, arguments: anytype) void {
    if (!trail.is_traced) return;
    std.debug.print("{d:>12} " ++ format ++ "\n", .{now_us} ++ arguments);
}

fn mix(value: u64) u64 {
    const first = (value ^ (value >> 32)) *% 0xd6e8feb86659fd93;
    return (first ^ (first >> 32)) *% 0xd6e8feb86659fd93;
}

test "the hash depends on the order of what happened" {
    var one: Trail = .{};
    var other: Trail = .{};
    one.note(1);
    one.noteBytes("a");
    other.noteBytes("a");
    other.note(1);
    try std.testing.expect(one.hash != other.hash);
}
