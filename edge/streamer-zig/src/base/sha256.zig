//! SHA-256 by the processor's own instructions where it has them, found out while the program runs: `std.crypto` uses them only where
//! the whole program is built for them, and ours starts on processors without. Same interface as `std.crypto.hash.sha2.Sha256`.
//!
//! One digest is a chain of steps that wait for each other. `hashEqual` goes along two at once, which takes little longer than one.

const std = @import("std");
const builtin = @import("builtin");
const assert = std.debug.assert;

const Software = std.crypto.hash.sha2.Sha256;
const State = [8]u32;
const Block = [block_length]u8;
/// Words a, b, e, f of the state or c, d, g, h; or four words of the message.
const Words = @Vector(4, u32);

pub const Sha256 = @This();

pub const digest_length = 32;
pub const block_length = 64;
pub const Options = struct {};
pub const Digest = [digest_length]u8;

state: State = first_state,
/// What is not a whole block yet.
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

/// The digests of pieces that are all of the same size and lie behind each other.
pub fn hashEqual(comptime size: usize, bytes: []const u8, out: []Digest) void {
    comptime assert(size % block_length == 0);
    assert(bytes.len == out.len * size);
    const end = comptime endOf("", size);
    var index: usize = 0;
    while (index + 1 < out.len) : (index += 2) {
        var states: [2]State = @splat(first_state);
        const both: [2]*State = .{ &states[0], &states[1] };
        compress(2, both, .{ bytes[index * size ..].ptr, bytes[(index + 1) * size ..].ptr }, size / block_length);
        compress(2, both, .{ &end.bytes, &end.bytes }, end.blocks);
        out[index..][0..2].* = .{ digestOf(&states[0]), digestOf(&states[1]) };
    }
    if (index < out.len) hash(bytes[index * size ..], &out[index], .{});
}

const first_state: State = .{
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

const End = struct { bytes: [2 * block_length]u8, blocks: usize };

/// The last blocks: what is left, a bit, zeros, and how many bits there were.
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

/// Takes so many blocks into each of the states.
fn compress(comptime lanes: usize, states: [lanes]*State, from: [lanes][*]const u8, blocks: usize) void {
    if (blocks == 0) return;
    if (is_compiled and !@inComptime() and hasInstructions()) return compressFast(lanes, states, from, blocks);
    for (states, from) |state, bytes| compressSoftware(state, bytes[0 .. blocks * block_length]);
}

/// On AArch64 by instructions too: there the whole program is built for them.
fn compressSoftware(state: *State, bytes: []const u8) void {
    var software: Software = .init(.{});
    software.s = state.*;
    software.update(bytes);
    state.* = software.s;
}

/// Zig's own code generator, which debug builds use, writes such instructions only into programs that need them anyway.
const is_compiled = builtin.cpu.arch == .x86_64 and builtin.zig_backend == .stage2_llvm;

/// 0: not asked yet. To ask takes long in a virtual machine.
var known: std.atomic.Value(u8) = .init(0);

/// Whether this processor has SHA-256 instructions that are used by choice.
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

/// A function of its own that is never merged into its callers, so that the wide registers are in order for instructions of the old kind.
noinline fn compressFast(comptime lanes: usize, states: [lanes]*State, from: [lanes][*]const u8, blocks: usize) void {
    var abef: [lanes]Words = undefined;
    var cdgh: [lanes]Words = undefined;
    inline for (0..lanes) |lane| {
        const s = states[lane];
        abef[lane] = .{ s[5], s[4], s[1], s[0] };
        cdgh[lane] = .{ s[7], s[6], s[3], s[2] };
    }
    for (0..blocks) |index| {
        const abef_before, const cdgh_before = .{ abef, cdgh };
        var message: [lanes][4]Words = undefined;
        inline for (0..lanes) |lane| {
            const bytes = from[lane][index * block_length ..][0..block_length];
            inline for (0..4) |part| {
                const words: *align(1) const Words = @ptrCast(bytes[part * 16 ..][0..16]);
                message[lane][part] = @byteSwap(words.*);
            }
        }
        inline for (0..16) |step| {
            inline for (0..lanes) |lane| {
                const words = &message[lane];
                const at = step % 4;
                const sum = words[at] +% round_words[step];
                cdgh[lane] = twoRounds(cdgh[lane], abef[lane], sum);
                if (step < 12) {
                    const one, const two, const three = .{ words[(at + 1) % 4], words[(at + 2) % 4], words[(at + 3) % 4] };
                    const between = @shuffle(u32, two, three, @Vector(4, i32){ 1, 2, 3, ~@as(i32, 0) });
                    words[at] = schedule2(schedule1(words[at], one) +% between, three);
                }
                const high = @shuffle(u32, sum, undefined, @Vector(4, i32){ 2, 3, 2, 3 });
                abef[lane] = twoRounds(abef[lane], cdgh[lane], high);
            }
        }
        inline for (0..lanes) |lane| {
            abef[lane] +%= abef_before[lane];
            cdgh[lane] +%= cdgh_before[lane];
        }
    }
    inline for (0..lanes) |lane| {
        const a, const c = .{ abef[lane], cdgh[lane] };
        states[lane].* = .{ a[3], a[2], c[3], c[2], a[1], a[0], c[1], c[0] };
    }
}

/// The registers' names swap: what comes back is what the other half becomes.
inline fn twoRounds(old: Words, other: Words, sums: Words) Words {
    return asm ("sha256rnds2 %[other], %[old]"
        : [old] "=x" (-> Words),
        : [_] "0" (old),
          [other] "x" (other),
          [_] "{xmm0}" (sums),
    );
}

inline fn schedule1(words: Words, next: Words) Words {
    return asm ("sha256msg1 %[next], %[words]"
        : [words] "=x" (-> Words),
        : [_] "0" (words),
          [next] "x" (next),
    );
}

inline fn schedule2(words: Words, last: Words) Words {
    return asm ("sha256msg2 %[last], %[words]"
        : [words] "=x" (-> Words),
        : [_] "0" (words),
          [last] "x" (last),
    );
}

/// The cube roots' fractions of FIPS 180-4, four rounds each.
const round_words = [16]Words{
    .{ 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5 }, .{ 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5 },
    .{ 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3 }, .{ 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174 },
    .{ 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc }, .{ 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da },
    .{ 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7 }, .{ 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967 },
    .{ 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13 }, .{ 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85 },
    .{ 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3 }, .{ 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070 },
    .{ 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5 }, .{ 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3 },
    .{ 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208 }, .{ 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 },
};

const testing = std.testing;
const Prng = @import("prng.zig").Prng;

/// Both ways, where this processor has both; else the one in software alone.
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
        // In two parts, at a place that the bytes' number decides.
        var sha: Sha256 = .init(.{});
        const cut = bytes.len * 5 / 7;
        sha.update(bytes[0..cut]);
        sha.update(bytes[cut..]);
        try testing.expectEqual(expected, sha.finalResult());
    }
}

test "digests are those of the standard library, of every size and with or without instructions" {
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

test "pieces of the same size have the digests that each has alone" {
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
