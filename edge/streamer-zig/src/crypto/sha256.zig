//! The compression function of SHA-256, with the processor's SHA instructions and without.

const std = @import("std");
const builtin = @import("builtin");
const Software = std.crypto.hash.sha2.Sha256;

pub const State = [8]u32;
pub const block_length = 64;
/// Words a, b, e, f of the state or c, d, g, h; or four words of the message.
const Words = @Vector(4, u32);

/// On AArch64 the standard library uses instructions, too: the whole program is built for them.
pub const is_compiled = builtin.cpu.arch == .x86_64;

pub fn compressPlain(state: *State, bytes: []const u8) void {
    var software: Software = .init(.{});
    software.s = state.*;
    software.update(bytes);
    state.* = software.s;
}

/// Never inlined into its callers, so that the wide registers are in a clean state for legacy SSE
/// instructions.
pub noinline fn compressFast(
    comptime lanes: usize,
    states: [lanes]*State,
    from: [lanes][*]const u8,
    blocks: usize,
) void {
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
                    const one, const two, const three = .{
                        words[(at + 1) % 4],
                        words[(at + 2) % 4],
                        words[(at + 3) % 4],
                    };
                    const between =
                        @shuffle(u32, two, three, @Vector(4, i32){ 1, 2, 3, ~@as(i32, 0) });
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

/// The registers swap roles: the result becomes the other half.
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

/// The fractions of the cube roots of FIPS 180-4, four rounds each.
const round_words = [16]Words{
    .{ 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5 },
    .{ 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5 },
    .{ 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3 },
    .{ 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174 },
    .{ 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc },
    .{ 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da },
    .{ 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7 },
    .{ 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967 },
    .{ 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13 },
    .{ 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85 },
    .{ 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3 },
    .{ 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070 },
    .{ 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5 },
    .{ 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3 },
    .{ 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208 },
    .{ 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 },
};
