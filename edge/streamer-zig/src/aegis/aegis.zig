//! AEGIS-128L of the standard library, built for processors with AES instructions: the standard
//! library selects them at compile time, and our programs also start on processors without.
//! `base.aegis128l` calls this only if the processor has them.

const std = @import("std");
const Aegis = std.crypto.aead.aegis.Aegis128L;

comptime {
    if (!std.crypto.core.aes.has_hardware_support)
        @compileError("this part is built for processors with AES instructions");
}

const Key = [Aegis.key_length]u8;
const Nonce = [Aegis.nonce_length]u8;
const Tag = [Aegis.tag_length]u8;

export fn bootfarm_aegis128l_seal(
    out: [*]u8,
    tag: *Tag,
    text: [*]const u8,
    size: usize,
    known: [*]const u8,
    known_size: usize,
    nonce: *const Nonce,
    key: *const Key,
) callconv(.c) void {
    Aegis.encrypt(out[0..size], tag, text[0..size], known[0..known_size], nonce.*, key.*);
}

/// Returns false if it is not what was sealed; `out` is undefined then.
export fn bootfarm_aegis128l_open(
    out: [*]u8,
    tag: *const Tag,
    sealed: [*]const u8,
    size: usize,
    known: [*]const u8,
    known_size: usize,
    nonce: *const Nonce,
    key: *const Key,
) callconv(.c) bool {
    Aegis.decrypt(out[0..size], sealed[0..size], tag.*, known[0..known_size], nonce.*, key.*) catch
        return false;
    return true;
}
