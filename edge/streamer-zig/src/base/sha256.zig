//! SHA-256 by the processor's own instructions, detected at run time: `std.crypto` uses them only
//! if the whole program is built for them, and ours starts on processors without. Same interface as
//! `std.crypto.hash.sha2.Sha256`.
//!
//! One digest is a chain of dependent steps. `hashEqual` computes two at once, which takes little
//! longer than one.

const std = @import("std");
const builtin = @import("builtin");
const assert = std.debug.assert;

const State = [8]u32;
const Block = [block_length]u8;

pub const Sha256 = @This();

pub const digest_length = 32;
pub const block_length = 64;
pub const Options = struct {};
pub const Digest = [digest_length]u8;

state: State = first_state,
/// The incomplete block.
tail: Block = undefined,
tail_size: u8 = 0,
/// Bytes.
total: u64 = 0,

pub fn init(_: Options) Sha256 {
    return .{};
}

pub fn hash(bytes: []const u8, out: *Digest, _: Options) void {
    var sha: Sha256 = .{};
    sha.update(bytes);
    out.* = sha.finalResult();
}

pub fn update(sha: *Sha256, bytes: []const u8) void {
    sha.total += bytes.len;
    var rest = bytes;
    if (sha.tail_size > 0) {
        const part = @min(rest.len, block_length - sha.tail_size);
        @memcpy(sha.tail[sha.tail_size..][0..part], rest[0..part]);
        sha.tail_size += @intCast(part);
        rest = rest[part..];
        if (sha.tail_size < block_length) return;
        compress(1, .{&sha.state}, .{&sha.tail}, 1);
        sha.tail_size = 0;
    }
    const blocks = rest.len / block_length;
    compress(1, .{&sha.state}, .{rest.ptr}, blocks);
    rest = rest[blocks * block_length ..];
    @memcpy(sha.tail[0..rest.len], rest);
    sha.tail_size = @intCast(rest.len);
}

pub fn final(sha: *Sha256, out: *Digest) void {
    out.* = sha.finalResult();
}

pub fn finalResult(sha: *Sha256) Digest {
    const end = endOf(sha.tail[0..sha.tail_size], sha.total);
    compress(1, .{&sha.state}, .{&end.bytes}, end.blocks);
    return digestOf(&sha.state);
}

/// Computes the digests of consecutive pieces of the same size.
pub fn hashEqual(comptime size: usize, bytes: []const u8, out: []Digest) void {
    comptime assert(size % block_length == 0);
    assert(bytes.len == out.len * size);
    const end = comptime endOf("", size);
    var index: usize = 0;
    while (index + 1 < out.len) : (index += 2) {
        var states: [2]State = @splat(first_state);
        const both: [2]*State = .{ &states[0], &states[1] };
        compress(
            2,
            both,
            .{ bytes[index * size ..].ptr, bytes[(index + 1) * size ..].ptr },
            size / block_length,
        );
        compress(2, both, .{ &end.bytes, &end.bytes }, end.blocks);
        out[index..][0..2].* = .{ digestOf(&states[0]), digestOf(&states[1]) };
    }
    if (index < out.len) hash(bytes[index * size ..], &out[index], .{});
}

const first_state: State = .{
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

const End = struct { bytes: [2 * block_length]u8, blocks: usize };

/// Returns the last blocks: the rest, a bit, zeros, and the number of bits.
fn endOf(tail: []const u8, total: u64) End {
    var end: End = .{ .bytes = @splat(0), .blocks = if (tail.len < block_length - 8) 1 else 2 };
    @memcpy(end.bytes[0..tail.len], tail);
    end.bytes[tail.len] = 0x80;
    std.mem.writeInt(u64, end.bytes[end.blocks * block_length - 8 ..][0..8], total *% 8, .big);
    return end;
}

fn digestOf(state: *const State) Digest {
    var digest: Digest = undefined;
    for (state, 0..) |word, index| std.mem.writeInt(u32, digest[index * 4 ..][0..4], word, .big);
    return digest;
}

// src/crypto/crypto.zig
extern fn bootfarm_sha256_plain(*State, [*]const u8, usize) callconv(.c) void;
extern fn bootfarm_sha256_fast(*State, [*]const u8, usize) callconv(.c) void;
extern fn bootfarm_sha256_fast_two(
    *State,
    *State,
    [*]const u8,
    [*]const u8,
    usize,
) callconv(.c) void;

/// Compresses this many blocks into each of the states.
fn compress(
    comptime lanes: usize,
    states: [lanes]*State,
    from: [lanes][*]const u8,
    blocks: usize,
) void {
    if (blocks == 0) return;
    if (!hasInstructions()) {
        for (states, from) |state, bytes| bootfarm_sha256_plain(state, bytes, blocks);
    } else switch (lanes) {
        1 => bootfarm_sha256_fast(states[0], from[0], blocks),
        2 => bootfarm_sha256_fast_two(states[0], states[1], from[0], from[1], blocks),
        else => comptime unreachable,
    }
}

const is_compiled = builtin.cpu.arch == .x86_64;

/// 0: unknown. CPUID is slow in a virtual machine.
var known: std.atomic.Value(u8) = .init(0);

/// Tells whether this processor has SHA-256 instructions that the program selects at run time. On
/// AArch64 they are always used.
pub fn hasInstructions() bool {
    if (!is_compiled) return false;
    const before = known.load(.monotonic);
    if (before != 0) return before == 2;
    const has = askProcessor();
    known.store(if (has) 2 else 1, .monotonic);
    return has;
}

fn askProcessor() bool {
    const ssse3, const sse41 = .{ 1 << 9, 1 << 19 };
    const sha = 1 << 29;
    if (cpuid(0)[0] < 7) return false;
    if (cpuid(1)[2] & (ssse3 | sse41) != ssse3 | sse41) return false;
    return cpuid(7)[1] & sha != 0;
}

/// eax, ebx, ecx, edx.
fn cpuid(leaf: u32) [4]u32 {
    var a: u32 = leaf;
    var b: u32 = undefined;
    var c: u32 = 0;
    var d: u32 = undefined;
    asm volatile ("cpuid"
        : [a] "+{eax}" (a),
          [b] "={ebx}" (b),
          [c] "+{ecx}" (c),
          [d] "={edx}" (d),
    );
    return .{ a, b, c, d };
}

const testing = std.testing;
const Software = std.crypto.hash.sha2.Sha256;
const Prng = @import("prng.zig");

/// Checks both implementations if this processor has both; otherwise the one in software.
fn expectSame(bytes: []const u8) !void {
    var expected: Digest = undefined;
    Software.hash(bytes, &expected, .{});
    const before = known.load(.monotonic);
    defer known.store(before, .monotonic);
    for ([_]bool{ false, true }) |is_fast| {
        if (is_fast and !(is_compiled and askProcessor())) continue;
        known.store(if (is_fast) 2 else 1, .monotonic);
        var digest: Digest = undefined;
        hash(bytes, &digest, .{});
        try testing.expectEqual(expected, digest);
        // In two parts, split at a point that the size determines.
        var sha: Sha256 = .init(.{});
        const cut = bytes.len * 5 / 7;
        sha.update(bytes[0..cut]);
        sha.update(bytes[cut..]);
        try testing.expectEqual(expected, sha.finalResult());
    }
}

test "digests match the standard library's, of every size and with or without instructions" {
    var bytes: [4096 + 200]u8 = undefined;
    var prng: Prng = .init(7);
    prng.fill(&bytes);
    for (0..300) |size| try expectSame(bytes[0..size]);
    for (4096 - 70..bytes.len) |size| try expectSame(bytes[0..size]);
    for (0..400) |_| {
        prng.fill(&bytes);
        const from: usize = @intCast(prng.below(bytes.len));
        try expectSame(bytes[from..]);
    }
    try expectSame(&@as([4096]u8, @splat(0)));
    try expectSame(&@as([4096]u8, @splat(0xff)));
}

test "pieces of the same size have the digest that each has alone" {
    var bytes: [9 * 4096]u8 = undefined;
    var prng: Prng = .init(8);
    prng.fill(&bytes);
    for (0..10) |count| {
        var digests: [9]Digest = undefined;
        hashEqual(4096, bytes[0 .. count * 4096], digests[0..count]);
        for (digests[0..count], 0..) |digest, index| {
            var expected: Digest = undefined;
            Software.hash(bytes[index * 4096 ..][0..4096], &expected, .{});
            try testing.expectEqual(expected, digest);
        }
    }
}
