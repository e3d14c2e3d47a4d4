//! Sends files about boots that wait to the control plane, the oldest first (UPLINK.md, captures
//! and reads of boots). One that cannot be sent is kept for a while; it never delays a report.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const FilesOfBoots = @import("../files/files_of_boots.zig");
const UplinkClient = @import("client.zig");

pub const BootFileSender = @This();

/// Null: there are none to send.
files: ?*const FilesOfBoots,
/// The last part of the path to which they are sent.
resource: []const u8,
buffer: []u8,
next_ms: u64 = 0,
delay_ms: u64 = delay_ms_first,
/// Boots that the control plane did not know when their files were sent last.
unknown: base.BoundedArray(base.Uuid, unknown_max) = .empty,
/// When those are tried again.
unknown_until_ms: u64 = 0,

/// One byte more than the longest may have, so that a longer one is detected.
pub const buffer_size = core.boot.CaptureStore.file_size_max + 1;
const unknown_max = 16;
const unknown_retry_ms = 60_000;
/// If the control plane does not know a boot of this age, it has forgotten it.
const unknown_age_ms_max = 60 * 60 * 1000;
const delay_ms_first = 1000;
const delay_ms_max = 30_000;
/// Short, so that heartbeats are not late.
const timeout_ms = 8_000;

/// Returns true if it handled a file: there may be more.
pub fn send(
    sender: *BootFileSender,
    gpa: std.mem.Allocator,
    client: *UplinkClient,
    now_ms: u64,
) bool {
    const files = sender.files orelse return false;
    if (now_ms < sender.next_ms) return false;
    if (now_ms >= sender.unknown_until_ms) {
        sender.unknown.clear();
        sender.unknown_until_ms = now_ms + unknown_retry_ms;
    }
    const entry = files.oldest(sender.unknown.constSlice()) orelse return false;
    const bytes = files.read(entry.boot_id, sender.buffer) orelse {
        files.remove(entry.boot_id);
        return true;
    };
    var arena: std.heap.ArenaAllocator = .init(gpa);
    defer arena.deinit();
    var path: [128]u8 = undefined;
    const named = .{ entry.boot_id, sender.resource };
    const text = std.mem.print(&path, "/edge/v1/boots/{f}/{s}", named) catch unreachable;
    var answer: [core.uplink.message.body_size_max]u8 = undefined;
    const result = client.request(.PUT, text, bytes, timeout_ms, &answer);
    sender.take(files, &entry, UplinkClient.meaning(arena.allocator(), result), now_ms);
    return true;
}

fn take(
    sender: *BootFileSender,
    files: *const FilesOfBoots,
    entry: *const FilesOfBoots.Entry,
    answer: core.uplink.sender.Answer,
    now_ms: u64,
) void {
    switch (answer) {
        .ok => {
            sender.delay_ms = delay_ms_first;
            files.remove(entry.boot_id);
        },
        .nothing => {
            sender.next_ms = now_ms + sender.delay_ms;
            sender.delay_ms = @min(sender.delay_ms * 2, delay_ms_max);
        },
        .later => |after_ms| {
            sender.next_ms = now_ms +
                @max(sender.delay_ms, @min(after_ms, core.uplink.sender.retry_after_most_ms));
            sender.delay_ms = @min(sender.delay_ms * 2, delay_ms_max);
        },
        .refused => |refused| {
            const age_ms = sys.unixMs() -| @as(u64, @intCast(
                @max(0, @divTrunc(entry.modified_ns, std.time.ns_per_ms)),
            ));
            const comes_later = refused.code == .boot_unknown and age_ms < unknown_age_ms_max;
            if (!comes_later) return files.remove(entry.boot_id);
            sender.unknown.append(entry.boot_id) catch files.remove(entry.boot_id);
        },
    }
}
