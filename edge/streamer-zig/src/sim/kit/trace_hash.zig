//! The trace hash of a run: covers everything that happened, in order, so that two runs of one seed
//! can be compared; on request, prints the same as text. Nothing that differs between processes
//! (addresses, hash tables) may enter it.

const std = @import("std");
const base = @import("base");

pub const TraceHash = @This();

hash: u64 = 0x9e3779b97f4a7c15,
is_traced: bool = false,
/// Of a packet, so many bytes are hashed; the rest follows from them.
const bytes_hashed_max = 64;

pub fn note(trace: *TraceHash, value: u64) void {
    trace.hash = mix(trace.hash ^ value);
}

pub fn noteBytes(trace: *TraceHash, bytes: []const u8) void {
    trace.note(bytes.len);
    trace.note(std.hash.Wyhash.hash(trace.hash, bytes[0..@min(bytes.len, bytes_hashed_max)]));
}

pub fn print(
    trace: *const TraceHash,
    now_us: u64,
    comptime format: []const u8,
    arguments: anytype,
) void {
    if (!trace.is_traced) return;
    std.debug.print("{d:>12} " ++ format ++ "\n", .{now_us} ++ arguments);
}

fn mix(value: u64) u64 {
    const first = (value ^ (value >> 32)) *% 0xd6e8feb86659fd93;
    return (first ^ (first >> 32)) *% 0xd6e8feb86659fd93;
}

test "the hash depends on the order of what happened" {
    var one: TraceHash = .{};
    var other: TraceHash = .{};
    one.note(1);
    one.noteBytes("a");
    other.noteBytes("a");
    other.note(1);
    try std.testing.expect(one.hash != other.hash);
}
