//! What this machine reports while it runs: the steps of its boot, the fill of its write cache, and
//! warnings when it fills. The intervals are ours (packages/proto/STREAM.md, REPORT); orders reach
//! this machine in the answers.

const std = @import("std");
const core = @import("core");
const stream = @import("wire").stream;
const say = @import("console.zig").say;
const sys_time = @import("sys_time.zig");
const write_cache = @import("write_cache.zig");
const RamCache = @import("ram_cache.zig");
const LocalCache = @import("local_disk/local_cache.zig");
const StepList = @import("timings/step_list.zig");

/// Interval of checks of the write cache.
const look_interval_us = 1 * std.time.us_per_s;
/// Interval of reports to the edge, also when nothing is new.
const report_interval_us = 5 * std.time.us_per_s;

pub const GuestReport = @This();

cache: ?write_cache.WriteCache = null,
/// Replaces it: what does not fit goes to the edge, which has its own marks.
ram: ?*const RamCache = null,
/// Added to it, instead of the edge.
local: ?*const LocalCache = null,
/// A write did not fit.
is_full: bool = false,
level: write_cache.Level = .{ .used_bytes = 0, .size_bytes = 0 },
warnings: write_cache.Warnings = .{},
steps: stream.StepList = .empty,
look_at_us: u64 = 0,
report_at_us: u64 = 0,
/// The machine has reported how its boot went.
has_outcome: bool = false,

/// Checks the write cache and sends what is due.
pub fn tend(report: *GuestReport, client: *core.stream.Client, now_us: u64) void {
    if (now_us >= report.look_at_us) {
        report.look_at_us = now_us + look_interval_us;
        report.look(client, now_us);
    }
    if (!report.isDue(now_us)) return;
    report.report_at_us = now_us + report_interval_us;
    const has_cache = report.level.size_bytes > 0;
    client.report(now_us, .{
        .uptime_us = sys_time.uptimeUs(),
        .write_cache = if (has_cache) .{
            .used = report.level.used_bytes,
            .size = report.level.size_bytes,
        } else null,
        .steps = report.steps.view(),
    });
}

/// A REPORT goes to the edge now.
pub fn isDue(report: *const GuestReport, now_us: u64) bool {
    return now_us >= report.report_at_us;
}

pub fn deadline(report: *const GuestReport) u64 {
    return @min(report.look_at_us, report.report_at_us);
}

/// `path` is on the file system that holds the write cache; returns false if it cannot be
/// watched.
pub fn watch(report: *GuestReport, path: [*:0]const u8) bool {
    const cache = write_cache.WriteCache.open(path) orelse return false;
    if (report.cache) |before| before.close();
    report.cache = cache;
    report.look_at_us = 0;
    return cache.level() != null;
}

/// The newest steps replace earlier ones.
pub fn setSteps(report: *GuestReport, list: *const StepList) void {
    report.steps = .empty;
    for (list.slice()) |*step| report.steps.append(.{
        .group = std.enums.fromInt(stream.StepGroup, @backingInt(step.group)).?,
        .name = step.name(),
        .start_us = step.start_us,
        .duration_us = step.duration_us,
    }) catch break; // Steps with very long names do not all fit one packet.
    report.report_at_us = 0;
}

/// The sum of both. It is full only once a write did not fit, since the edge acts on that.
fn lookAtLocal(report: *GuestReport, local: *const LocalCache) void {
    const size = report.level.size_bytes + local.sizeBytes();
    const used =
        if (report.is_full) size else @min(report.level.used_bytes + local.usedBytes(), size - 1);
    report.level = .{ .used_bytes = used, .size_bytes = size };
    const mark = report.warnings.next(report.level) orelse return;
    report.report_at_us = 0;
    if (mark < 100)
        say("write cache in RAM and on the local disk is {d} % full ({d} of {d} MiB)", .{
            report.level.percent(), used >> 20, size >> 20,
        });
}

fn look(report: *GuestReport, client: *core.stream.Client, now_us: u64) void {
    if (report.ram) |ram|
        report.level = .{ .used_bytes = ram.usedBytes(), .size_bytes = ram.sizeBytes() };
    if (report.local) |local| report.lookAtLocal(local);
    const cache = report.cache orelse return;
    report.level = cache.level() orelse return;
    const mark = report.warnings.next(report.level) orelse return;
    report.report_at_us = 0;
    const used_mib = report.level.used_bytes >> 20;
    const size_mib = report.level.size_bytes >> 20;
    if (mark < 100) {
        say("write cache in RAM is {d} % full ({d} of {d} MiB); at 100 % writes fail", .{
            report.level.percent(), used_mib, size_mib,
        });
        return;
    }
    say("write cache in RAM is full ({d} MiB): writes fail; enlarge it with " ++
        "bootfarm.overlay=, or write less", .{size_mib});
    if (report.has_outcome) return;
    report.has_outcome = true;
    var buffer: [64]u8 = undefined;
    client.reportReady(now_us, .failed, sys_time.uptimeUs(), .{
        .code = "cache_full",
        .sentence = std.mem.print(
            &buffer,
            "write cache in RAM is full ({d} MiB)",
            .{size_mib},
        ) catch
            unreachable, // A number of MiB has at most 14 digits.
    });
}
