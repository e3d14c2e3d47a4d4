//! AEGIS-128L (draft-irtf-cfrg-aegis-aead) by the processor's AES instructions, detected at run
//! time. Without them it would be a hundred times slower, and another cipher is better.

const std = @import("std");
const builtin = @import("builtin");

pub const key_size = 16;
const nonce_size = 16;
pub const tag_size = 16;

pub const Key = [key_size]u8;
pub const Nonce = [nonce_size]u8;
pub const Tag = [tag_size]u8;

// src/aegis/aegis.zig
extern fn bootfarm_aegis128l_seal(
    [*]u8,
    *Tag,
    [*]const u8,
    usize,
    [*]const u8,
    usize,
    *const Nonce,
    *const Key,
) callconv(.c) void;
extern fn bootfarm_aegis128l_open(
    [*]u8,
    *const Tag,
    [*]const u8,
    usize,
    [*]const u8,
    usize,
    *const Nonce,
    *const Key,
) callconv(.c) bool;

/// `text` and `out` have the same size, and are identical or disjoint. `known` is authenticated and
/// not encrypted. Requires `hasInstructions`.
pub fn seal(
    out: []u8,
    tag: *Tag,
    text: []const u8,
    known: []const u8,
    nonce: Nonce,
    key: *const Key,
) void {
    std.debug.assert(out.len == text.len);
    bootfarm_aegis128l_seal(out.ptr, tag, text.ptr, text.len, known.ptr, known.len, &nonce, key);
}

/// Returns false if this was not sealed; `out` then holds nothing of value. Requires
/// `hasInstructions`.
pub fn open(
    out: []u8,
    tag: *const Tag,
    sealed: []const u8,
    known: []const u8,
    nonce: Nonce,
    key: *const Key,
) bool {
    std.debug.assert(out.len == sealed.len);
    return bootfarm_aegis128l_open(
        out.ptr,
        tag,
        sealed.ptr,
        sealed.len,
        known.ptr,
        known.len,
        &nonce,
        key,
    );
}

/// 0: unknown. CPUID is slow in a virtual machine.
var known_answer: std.atomic.Value(u8) = .init(0);

/// Tells whether this processor has the instructions that `seal` and `open` need.
pub fn hasInstructions() bool {
    const before = known_answer.load(.monotonic);
    if (before != 0) return before == 2;
    const has = askProcessor();
    known_answer.store(if (has) 2 else 1, .monotonic);
    return has;
}

fn askProcessor() bool {
    switch (builtin.cpu.arch) {
        .x86_64 => {
            const aes, const osxsave, const avx = .{ 1 << 25, 1 << 27, 1 << 28 };
            const needed: u32 = aes | osxsave | avx;
            if (features() & needed != needed) return false;
            // The system saves the registers of SSE and AVX.
            return enabledState() & 0b110 == 0b110;
        },
        // HWCAP_AES of Linux.
        .aarch64 => return std.os.linux.getauxval(std.elf.AT.HWCAP) & (1 << 3) != 0,
        else => return false,
    }
}

/// Returns ecx of CPUID's leaf 1.
fn features() u32 {
    var a: u32 = 1;
    var b: u32 = undefined;
    var c: u32 = 0;
    var d: u32 = undefined;
    asm volatile ("cpuid"
        : [a] "+{eax}" (a),
          [b] "={ebx}" (b),
          [c] "+{ecx}" (c),
          [d] "={edx}" (d),
    );
    return c;
}

/// Returns register XCR0, whose low half lists the saved registers.
fn enabledState() u32 {
    return asm volatile ("xgetbv"
        : [low] "={eax}" (-> u32),
        : [register] "{ecx}" (@as(u32, 0)),
        : .{ .edx = true });
}

const testing = std.testing;

test "this build has AEGIS-128L by instructions, equal to the standard library's" {
    // The machines that build and test have them; a build without them would use a slower cipher
    // everywhere.
    try testing.expect(hasInstructions());
    const key: Key = "0123456789abcdef".*;
    var nonce: Nonce = @splat(0);
    var text: [1440]u8 = undefined;
    for (&text, 0..) |*byte, index| byte.* = @truncate(index *% 7);
    for ([_]usize{ 0, 1, 31, 32, 33, 512, 1440 }) |size| {
        nonce[15] +%= 1;
        var sealed: [1440]u8 = undefined;
        var expected: [1440]u8 = undefined;
        var tag: Tag = undefined;
        var expected_tag: Tag = undefined;
        seal(sealed[0..size], &tag, text[0..size], "header", nonce, &key);
        std.crypto.aead.aegis.Aegis128L.encrypt(
            expected[0..size],
            &expected_tag,
            text[0..size],
            "header",
            nonce,
            key,
        );
        try testing.expectEqualSlices(u8, expected[0..size], sealed[0..size]);
        try testing.expectEqualSlices(u8, &expected_tag, &tag);
        try testing.expect(!open(expected[0..size], &tag, sealed[0..size], "Header", nonce, &key));
        try testing.expect(open(sealed[0..size], &tag, sealed[0..size], "header", nonce, &key));
        try testing.expectEqualSlices(u8, text[0..size], sealed[0..size]);
    }
}
