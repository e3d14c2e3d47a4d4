//! Runs a copy of a store for `vdisk backup` and `vdisk restore`: progress, rate, signals, and the
//! sentences about what was found.

const std = @import("std");
const host = @import("host");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const Call = @import("../subcommand.zig");
const directory_module = @import("directory.zig");
const Complaint = @import("../../complaint.zig");
const open_store = @import("../open_store.zig");
const output = @import("../output.zig");
const Pace = @import("../pace.zig");

const StoreCopy = store_module.StoreCopy;
const Store = store_module.Store;

pub const Rate = struct {
    rate_mib: ?u32 = null,
    /// Uses at most half of the disk's time.
    idle: bool = false,
};

pub const CopyRun = @This();

call: *const Call,
/// Of the store that is read.
from_path: []const u8,
to_path: []const u8,
line: output.ProgressLine,
pace: Pace,

pub fn init(call: *const Call, from_path: []const u8, to_path: []const u8, rate: Rate) CopyRun {
    return .{
        .call = call,
        .from_path = from_path,
        .to_path = to_path,
        .line = .init(call.is_json),
        .pace = .init(rate.rate_mib, rate.idle),
    };
}

pub const Options = struct { checks_all: bool = false, removes: bool = true };

/// `Canceled`: a signal has ended it; the same copy continues.
pub fn run(
    running: *CopyRun,
    from: *Store,
    to: *Store,
    options: Options,
) (Call.Error || error{Canceled})!StoreCopy.Result {
    defer running.line.end();
    return StoreCopy.run(running.call.gpa, from, to, .{
        .pulse = .{ .context = running, .call = pulse },
        .context = running,
        .report = report,
        .evict = directory_module.evict,
        .checks_all = options.checks_all,
        .removes = options.removes,
    }) catch |err| switch (err) {
        error.OutOfMemory => error.OutOfMemory,
        error.Canceled => error.Canceled,
        error.SourceFailed => running.call.fail(
            "{s} cannot be read: its disk reports an error, or its key is damaged.",
            .{running.from_path},
        ),
        else => |other| directory_module.explain(running.call, running.to_path, other),
    };
}

fn pulse(context: *anyopaque, done: u64) error{Canceled}!void {
    const running: *CopyRun = @ptrCast(@alignCast(context));
    if (cancel.is_asked.load(.monotonic)) return error.Canceled;
    running.line.update(.{ .position = done, .size = null });
    running.pace.wait(done);
}

fn report(context: *anyopaque, finding: *const StoreCopy.Finding) void {
    const running: *CopyRun = @ptrCast(@alignCast(context));
    const call = running.call;
    switch (finding.*) {
        .copied => |found| call.print(
            .{ .copied = found.version, .writtenBytes = found.bytes },
            "copied version {f}: {f} written",
            .{ found.version, output.Size{ .bytes = found.bytes } },
        ),
        .removed => |id| call.print(
            .{ .removed = id },
            "removed version {f}, which the store no longer has",
            .{id},
        ),
        .damaged => |found| call.print(
            .{
                .version = found.version,
                .atByte = found.problem.at,
                .problem = problemOf(&found.problem),
            },
            "version {f}, at byte {d}: {s}",
            .{ found.version, found.problem.at, problemOf(&found.problem) },
        ),
        .damaged_more => |found| {
            var buffer: [128]u8 = undefined;
            const text = std.mem.print(&buffer, "{d} more places are damaged", .{found.count}) catch
                unreachable;
            call.print(
                .{ .version = found.version, .problem = text },
                "version {f}: {s}",
                .{ found.version, text },
            );
        },
        .unreadable => |found| {
            var complaint: Complaint = .{};
            open_store.explainVersion(
                running.from_path,
                found.version,
                found.why,
                &complaint,
            ) catch {};
            const text = complaint.text();
            call.print(.{ .version = found.version, .problem = text }, "{s}", .{text});
        },
        .boot_file => |found| {
            const text = if (found.is_kernel)
                "its kernel is damaged or missing"
            else
                "its initramfs is damaged or missing";
            call.print(
                .{ .version = found.version, .problem = text },
                "version {f}: {s}",
                .{ found.version, text },
            );
        },
    }
}

fn problemOf(problem: *const StoreCopy.Problem) []const u8 {
    return switch (problem.side) {
        .destination => "other bytes are read back than were written: the disk of the copy fails",
        .source => switch (problem.why) {
            error.Damaged => if (problem.level == null)
                "a block is damaged"
            else
                "a node is damaged, and nothing below it can be copied",
            error.ReadFailed => "it cannot be read: the disk reports an error",
        },
    };
}
