//! TPM 2.0 commands (TCG, Part 3). A command is its tag, its size, its code, handles, sessions and
//! parameters, all big endian. The only session is the empty password.

const std = @import("std");
const base = @import("base");
const tpm = @import("tpm.zig");
const assert = std.debug.assert;

/// Of the largest command here.
pub const size_max = 256;
const header_size = 10;

/// TPM_CC.
pub const Code = enum(u32) {
    create_primary = 0x0131,
    self_test = 0x0143,
    startup = 0x0144,
    sign = 0x015d,
    flush_context = 0x0165,
    get_capability = 0x017a,
};

/// TPM_RS_PW: a password instead of a session.
const password_session: u32 = 0x4000_0009;

/// Part of the template (TPMT_PUBLIC.unique): it separates the key from others in this hierarchy
/// and, since nothing is stored, must never change.
const unique_text = "bootfarm device identity v1";
const coordinate_size = 32;

/// Asks for `count` properties from `first` on (TPM2_GetCapability).
pub fn getProperties(buffer: *[size_max]u8, first: u32, count: u32) []const u8 {
    var command: Writer = .begin(buffer, .no_sessions, .get_capability);
    command.int(u32, tpm.cap_tpm_properties);
    command.int(u32, first);
    command.int(u32, count);
    return command.finish();
}

/// TPM2_Startup with TPM_SU_CLEAR; firmware has done it on most machines.
pub fn startup(buffer: *[size_max]u8) []const u8 {
    var command: Writer = .begin(buffer, .no_sessions, .startup);
    command.int(u16, 0);
    return command.finish();
}

/// Tests what was not tested yet (TPM2_SelfTest with fullTest NO).
pub fn selfTest(buffer: *[size_max]u8) []const u8 {
    var command: Writer = .begin(buffer, .no_sessions, .self_test);
    command.int(u8, 0);
    return command.finish();
}

/// Makes the device's key from the hierarchy's seed: the same key each time, until the TPM is
/// cleared (TPM2_CreatePrimary).
pub fn createPrimary(buffer: *[size_max]u8) []const u8 {
    var command: Writer = .begin(buffer, .sessions, .create_primary);
    command.int(u32, @backingInt(tpm.Hierarchy.owner));
    command.emptyPassword();
    // TPM2B_SENSITIVE_CREATE: no password, no data.
    command.int(u16, 4);
    command.int(u16, 0);
    command.int(u16, 0);
    const public = command.beginSized();
    command.int(u16, tpm.alg_ecc);
    command.int(u16, tpm.alg_sha256);
    command.int(u32, (tpm.Attributes{}).toInt());
    command.int(u16, 0); // no policy
    command.int(u16, tpm.alg_null); // no symmetric cipher
    command.int(u16, tpm.alg_ecdsa);
    command.int(u16, tpm.alg_sha256);
    command.int(u16, tpm.curve_p256);
    command.int(u16, tpm.alg_null); // no KDF
    command.int(u16, coordinate_size);
    command.bytes(unique_text ++ @as([coordinate_size - unique_text.len]u8, @splat(0)));
    command.int(u16, coordinate_size);
    command.bytes(&@as([coordinate_size]u8, @splat(0)));
    command.endSized(public);
    command.int(u16, 0); // no outside information
    command.int(u32, 0); // no PCRs
    return command.finish();
}

/// Signs a digest by the key's own scheme (TPM2_Sign).
pub fn sign(buffer: *[size_max]u8, key: u32, digest: *const [tpm.digest_size]u8) []const u8 {
    var command: Writer = .begin(buffer, .sessions, .sign);
    command.int(u32, key);
    command.emptyPassword();
    command.int(u16, tpm.digest_size);
    command.bytes(digest);
    command.int(u16, tpm.alg_null);
    // TPMT_TK_HASHCHECK of a digest that the TPM has not computed.
    command.int(u16, @backingInt(tpm.Tag.hashcheck));
    command.int(u32, @backingInt(tpm.Hierarchy.null));
    command.int(u16, 0);
    return command.finish();
}

/// Removes a key from the TPM's memory (TPM2_FlushContext).
pub fn flushContext(buffer: *[size_max]u8, handle: u32) []const u8 {
    var command: Writer = .begin(buffer, .no_sessions, .flush_context);
    command.int(u32, handle);
    return command.finish();
}

/// Writes into a buffer that has room for each command here.
const Writer = struct {
    inner: base.ByteWriter,

    fn begin(buffer: *[size_max]u8, tag: tpm.Tag, code: Code) Writer {
        var writer: Writer = .{ .inner = .init(buffer) };
        writer.int(u16, @backingInt(tag));
        writer.int(u32, 0);
        writer.int(u32, @backingInt(code));
        assert(writer.inner.position == header_size);
        return writer;
    }

    fn finish(writer: *Writer) []const u8 {
        const written = writer.inner.written();
        std.mem.writeInt(u32, written[2..6], @intCast(written.len), .big);
        return written;
    }

    fn int(writer: *Writer, comptime T: type, value: T) void {
        writer.inner.int(T, value) catch unreachable;
    }

    fn bytes(writer: *Writer, source: []const u8) void {
        writer.inner.bytes(source) catch unreachable;
    }

    /// TPMS_AUTH_COMMAND with its size: no nonce, no attributes, no password.
    fn emptyPassword(writer: *Writer) void {
        writer.int(u32, 9);
        writer.int(u32, password_session);
        writer.int(u16, 0);
        writer.int(u8, 0);
        writer.int(u16, 0);
    }

    fn beginSized(writer: *Writer) usize {
        writer.int(u16, 0);
        return writer.inner.position;
    }

    fn endSized(writer: *Writer, at: usize) void {
        const size: u16 = @intCast(writer.inner.position - at);
        std.mem.writeInt(u16, writer.inner.buffer[at - 2 ..][0..2], size, .big);
    }
};
