//! Response codes of a TPM 2.0 (TCG, Part 2, "TPM_RC"), what to do about them, and sentences for
//! people.

const std = @import("std");

pub const ResponseCode = struct {
    value: u32,

    /// What the caller does next.
    pub const Remedy = enum {
        /// It works after a moment: the TPM is busy, or tests itself.
        retry,
        /// Firmware has not sent TPM2_Startup.
        startup,
        /// Something has to be tested first.
        self_test,
        none,
    };

    /// In responses of Linux' resource manager, which answers some commands itself, the upper half
    /// names that layer.
    const layer_mask: u32 = 0xffff;
    /// Of TPM 1.2.
    const bad_tag: u32 = 0x01e;
    const format_one: u32 = 0x080;
    /// What such a code blames: a parameter, a session or a handle, and which of them.
    const format_one_error: u32 = 0x0bf;

    pub fn isSuccess(code: ResponseCode) bool {
        return code.value == 0;
    }

    pub fn remedy(code: ResponseCode) Remedy {
        return switch (code.kind()) {
            .yielded, .testing, .nv_rate, .retry => .retry,
            .initialize => .startup,
            .needs_test => .self_test,
            else => .none,
        };
    }

    /// The cause as the end of a sentence that begins with "the TPM".
    pub fn sentence(code: ResponseCode) []const u8 {
        return switch (code.kind()) {
            .bad_tag => "is a TPM 1.2; a device key needs a TPM 2.0",
            .auth_fail, .bad_auth => "wants its owner's password; clear it in the firmware's setup",
            .lockout => "is locked after too many wrong passwords; hours unlock it",
            .hierarchy => "has its owner hierarchy disabled; enable it in the firmware's setup",
            .curve, .asymmetric, .scheme, .value => "cannot make keys of the curve P-256",
            .command_code => "lacks a command that a device key needs",
            .object_memory, .memory, .object_handles => "has no memory for a key; others use it",
            .failure => "has failed its self-test; switch the machine off and on",
            .reboot, .upgrade => "was updated and works after a restart",
            .yielded, .testing, .nv_rate, .retry => "is busy for too long",
            .initialize => "was not started by the firmware",
            .needs_test => "was not tested",
            else => "refuses a command",
        };
    }

    const Kind = enum(u32) {
        bad_tag = bad_tag,
        asymmetric = 0x081,
        value = 0x084,
        hierarchy = 0x085,
        auth_fail = 0x08e,
        scheme = 0x092,
        bad_auth = 0x0a2,
        curve = 0x0a6,
        initialize = 0x100,
        failure = 0x101,
        upgrade = 0x12d,
        reboot = 0x130,
        command_code = 0x143,
        needs_test = 0x153,
        object_memory = 0x902,
        memory = 0x904,
        object_handles = 0x906,
        yielded = 0x908,
        testing = 0x90a,
        nv_rate = 0x920,
        lockout = 0x921,
        retry = 0x922,
        _,
    };

    /// The code without what it blames.
    fn kind(code: ResponseCode) Kind {
        const own = code.value & layer_mask;
        const is_format_one = own & format_one != 0;
        return @fromBackingInt(if (is_format_one) own & format_one_error else own);
    }
};

const testing = std.testing;

test "a code means the same whatever parameter, session or handle it blames" {
    // Part 2, "Response Code Details": bits 8 to 11 and 6.
    for ([_]u32{ 0x0a2, 0x9a2, 0x98e, 0x08e }) |value| {
        const code: ResponseCode = .{ .value = value };
        try testing.expect(std.mem.find(u8, code.sentence(), "password") != null);
        try testing.expectEqual(.none, code.remedy());
    }
    try testing.expectEqualStrings(
        (ResponseCode{ .value = 0x0a6 }).sentence(),
        (ResponseCode{ .value = 0x2e6 }).sentence(),
    );
}

test "busy TPMs are asked again, and others are started or tested" {
    for ([_]u32{ 0x908, 0x90a, 0x920, 0x922, 0xb0922 }) |value|
        try testing.expectEqual(.retry, (ResponseCode{ .value = value }).remedy());
    try testing.expectEqual(.startup, (ResponseCode{ .value = 0x100 }).remedy());
    try testing.expectEqual(.self_test, (ResponseCode{ .value = 0x153 }).remedy());
    for ([_]u32{ 0x01e, 0x101, 0x921, 0xffff_ffff }) |value|
        try testing.expectEqual(.none, (ResponseCode{ .value = value }).remedy());
}

test "every code has a sentence" {
    for (0..0x1000) |value|
        try testing.expect((ResponseCode{ .value = @intCast(value) }).sentence().len > 0);
}
