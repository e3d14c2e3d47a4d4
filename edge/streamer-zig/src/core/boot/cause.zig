//! Translates a failure that a device reports (READY failed of packages/proto/STREAM.md, POST
//! failed of UPLINK.md) into the cause and the text of its boot. Devices use a few short codes;
//! readers know the causes of boot-phases.json.

const std = @import("std");
const base = @import("base");
const boot_phase = @import("phase.zig");

const Cause = boot_phase.Cause;

pub const code_size_max = 12;

const DeviceCode = struct { code: []const u8, cause: Cause };

/// The codes that a device may send; two of them may map to one cause.
const device_codes = [_]DeviceCode{
    .{ .code = "wrong_kernel", .cause = .kernel_mismatch },
    .{ .code = "no_nbd", .cause = .kernel_without_nbd },
    .{ .code = "no_stream", .cause = .stream_unreachable },
    .{ .code = "no_token", .cause = .token_refused },
    .{ .code = "no_identity", .cause = .identity_refused },
    .{ .code = "no_version", .cause = .version_missing },
    .{ .code = "disk_short", .cause = .disk_truncated },
    .{ .code = "no_root", .cause = .root_not_found },
    .{ .code = "no_init", .cause = .root_not_found },
    .{ .code = "cache_full", .cause = .write_cache_full },
    .{ .code = "cache_lost", .cause = .write_cache_lost },
    .{ .code = "cache_other", .cause = .write_cache_of_another_version },
    .{ .code = "cache_failed", .cause = .write_cache_unusable },
    .{ .code = "cache_disk", .cause = .write_cache_disk_unusable },
};

pub const Failure = struct { cause: Cause, text: base.UntrustedText };

/// The sentence becomes the boot's text. An unknown code stays readable in front of it.
pub fn failureOf(code: []const u8, sentence: []const u8) Failure {
    for (device_codes) |word| {
        if (std.mem.eql(u8, word.code, code))
            return .{ .cause = word.cause, .text = .init(sentence) };
    }
    return .{ .cause = .guest_reported_failure, .text = joined(code, sentence) };
}

/// Parses the body of `POST failed`: a code, a space and a sentence; null if it does not begin with
/// a code. Trailing white space belongs to the sending tool.
pub fn failureOfBody(body: []const u8) ?Failure {
    const text = std.mem.trimEnd(u8, body, " \t\r\n");
    const code, const sentence = std.mem.cutScalar(u8, text, ' ') orelse .{ text, "" };
    if (code.len == 0 or code.len > code_size_max) return null;
    for (code) |byte| if (!std.ascii.isPrint(byte)) return null;
    return failureOf(code, std.mem.trimStart(u8, sentence, " "));
}

fn joined(code: []const u8, sentence: []const u8) base.UntrustedText {
    if (code.len == 0) return .init(sentence);
    if (sentence.len == 0) return .init(code);
    var buffer: [2 * base.UntrustedText.size_max]u8 = undefined;
    var writer: base.ByteWriter = .init(&buffer);
    for ([_][]const u8{ code, ": ", sentence }) |part|
        writer.bytes(part[0..@min(part.len, writer.remaining())]) catch unreachable;
    return .init(writer.written());
}

const testing = std.testing;

test "a device's code becomes the boot's cause, and its sentence the text" {
    for (device_codes) |word| {
        const failure = failureOf(word.code, "6.1 is not 6.2");
        try testing.expectEqual(word.cause, failure.cause);
        try testing.expectEqualStrings("6.1 is not 6.2", failure.text.slice());
        try testing.expect(word.code.len <= code_size_max);
    }
}

test "a body is a code, a space and a sentence" {
    const failure = failureOfBody("no_root  nothing on /dev/nbd0\r\n").?;
    try testing.expectEqual(.root_not_found, failure.cause);
    try testing.expectEqualStrings("nothing on /dev/nbd0", failure.text.slice());
    try testing.expectEqual(.kernel_without_nbd, failureOfBody("no_nbd").?.cause);
    // A code of twelve characters is as long as codes get.
    try testing.expectEqual(.kernel_mismatch, failureOfBody("wrong_kernel 6.1").?.cause);
    for ([_][]const u8{ "", "\n", " no_root", "thirteen_long x", "a\x00b c" }) |body|
        try testing.expectEqual(null, failureOfBody(body));
}

test "an unknown code is a failure that the device reported, and stays in its text" {
    const failure = failureOf("my_own_code", "it burns");
    try testing.expectEqual(.guest_reported_failure, failure.cause);
    try testing.expectEqualStrings("my_own_code: it burns", failure.text.slice());
    try testing.expectEqualStrings("my_own_code", failureOf("my_own_code", "").text.slice());
    try testing.expectEqualStrings("it burns", failureOf("", "it burns").text.slice());
    const long: [64]u8 = @splat('x');
    try testing.expectEqual(64, failureOf(&long, &long).text.slice().len);
}
