//! Sends an account of the boot to the edge in parts, through the process that serves the disk
//! (packages/proto/STREAM.md, ACCOUNT): one part at a time, each answered once the edge has it.

const std = @import("std");
const linux = std.os.linux;
const stream = @import("wire").stream;
const control = @import("../control_socket.zig");
const assert = std.debug.assert;

/// An edge that knows no accounts never answers.
const answer_timeout_s = 10;
/// Also while another process takes over the stream.
const attempts_max = 3;
/// The first part is due while the disk is being connected, when nobody may listen yet; a small
/// system is ready half a second later, and then it is too late. 20 seconds.
const first_attempts_max = 400;
const first_pause: linux.timespec = .{ .sec = 0, .nsec = 50 * std.time.ns_per_ms };
/// A part of another account takes a moment.
const busy_max = 30;
/// In front of each account.
const magic_size = 8;
const Patience = struct {
    attempts_max: u32 = attempts_max,
    busy_max: u32 = busy_max,
    pause: linux.timespec = .{ .sec = 1, .nsec = 0 },
};

/// Sends the magic in front as the first part, which tells the edge that the account will come.
pub fn first(kind: stream.AccountKind, magic: []const u8) bool {
    assert(magic.len == magic_size);
    return sendPart(kind, 0, false, magic, .{
        .attempts_max = first_attempts_max,
        .busy_max = first_attempts_max,
        .pause = first_pause,
    });
}

/// Sends what follows it. Returns whether the edge has all of it.
pub fn rest(kind: stream.AccountKind, bytes: []const u8) bool {
    var at: usize = magic_size;
    var number: u16 = 1;
    while (at < bytes.len) : (number += 1) {
        const size = @min(bytes.len - at, stream.account_part_size_max);
        const is_last = at + size == bytes.len;
        if (!sendPart(kind, number, is_last, bytes[at..][0..size], .{})) return false;
        at += size;
    }
    return true;
}

fn sendPart(
    kind: stream.AccountKind,
    number: u16,
    is_last: bool,
    bytes: []const u8,
    patience: Patience,
) bool {
    var request: [64 + stream.account_part_size_max]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&request);
    writer.print("account {d} {d} {d} ", .{
        @backingInt(kind), number, @intFromBool(is_last),
    }) catch unreachable;
    writer.writeAll(bytes) catch unreachable;
    var attempts: u32 = 0;
    var busy: u32 = 0;
    while (attempts < patience.attempts_max and busy < patience.busy_max) {
        if (attempts + busy > 0) _ = linux.nanosleep(&patience.pause, null);
        var answer: [control.message_size_max]u8 = undefined;
        const said = control.ask(writer.buffered(), answer_timeout_s, &answer) catch "";
        if (std.mem.eql(u8, said, control.done)) return true;
        if (std.mem.eql(u8, said, another)) busy += 1 else attempts += 1;
    }
    return false;
}

/// The answer while a part of another account is being sent.
pub const another = "another account is being sent";

/// A part as the process that serves the disk gets it.
pub fn parse(text: []const u8) ?stream.Account {
    const kind_text, const after_kind = std.mem.cutScalar(u8, text, ' ') orelse return null;
    const number, const after_number = std.mem.cutScalar(u8, after_kind, ' ') orelse return null;
    const is_last, const bytes = std.mem.cutScalar(u8, after_number, ' ') orelse return null;
    if (bytes.len == 0 or bytes.len > stream.account_part_size_max) return null;
    const kind = std.fmt.parseInt(u8, kind_text, 10) catch return null;
    return .{
        .kind = std.enums.fromInt(stream.AccountKind, kind) orelse return null,
        .part = std.fmt.parseInt(u16, number, 10) catch return null,
        .is_last = std.mem.eql(u8, is_last, "1"),
        .bytes = bytes,
    };
}

test "a part is read as it was written, and nothing else is a part" {
    const testing = std.testing;
    const part = parse("1 7 1 \x00 a b").?;
    try testing.expectEqual(stream.AccountKind.block_trace, part.kind);
    try testing.expectEqual(7, part.part);
    try testing.expect(part.is_last);
    try testing.expectEqualStrings("\x00 a b", part.bytes);
    for ([_][]const u8{ "", "1 7 1", "1 7 1 ", "9 7 1 a", "1 70000 1 a", "1 -1 1 a" }) |text|
        try testing.expectEqual(null, parse(text));
}
