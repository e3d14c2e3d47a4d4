//! Has this edge's copies of its write layers brought up to date on a schedule
//! (core/layer_copies/copy_schedule.zig): by a process of this same program (`vdisk caches copy`),
//! which a thread waits for, so that nothing else does. Without another edge of the site nobody
//! would fetch them, and none are made.

const std = @import("std");
const core = @import("core");
const sys = @import("../sys.zig");
const log = @import("../log.zig");
const DataDir = @import("../files/data_dir.zig");
const SitePeers = @import("../difference/site_peers.zig");
const StoreChild = @import("../uplink/store_child.zig");
const linux = std.os.linux;
const store_job = core.uplink.store_job;

pub const CopyMaker = @This();

/// Also after a fork: it names the running program.
const own_program = "/proc/self/exe";
const turn_ms = 15_000;
/// Devices come first: an edge that has just started may be in a boot storm.
const start_delay_ms = 10 * std.time.ms_per_min;
/// Longer than a store of terabytes needs at idle priority; a disk that hangs holds nobody longer.
const run_limit_ms = 24 * std.time.ms_per_hour;
/// In the data directory: when all was done last.
const schedule_name = "cache-copies";

peers: *SitePeers,
data: *const DataDir,
/// Both outlive this.
store_path: []const u8,
data_path: []const u8,
program: []const u8 = own_program,
reserve_bytes: ?u64,
/// Of the state; 0: never.
hours: std.atomic.Value(u16) = .init(0),
schedule: core.layer_copies.CopySchedule = .{},
/// Why the last one failed.
why: store_job.Message = .empty,

pub const Options = struct {
    peers: *SitePeers,
    data: *const DataDir,
    store_path: []const u8,
    data_path: []const u8,
    /// Bytes of the store's file system that copies leave free; null: the usual.
    reserve_bytes: ?u64 = null,
};

pub fn init(gpa: std.mem.Allocator, options: Options) CopyMaker {
    var maker: CopyMaker = .{
        .peers = options.peers,
        .data = options.data,
        .store_path = options.store_path,
        .data_path = options.data_path,
        .reserve_bytes = options.reserve_bytes,
    };
    if (options.data.read(gpa, schedule_name)) |text| {
        defer gpa.free(text);
        maker.schedule.restore(text);
    } else |_| {}
    return maker;
}

/// From any thread; longer than a week is a week.
pub fn setHours(maker: *CopyMaker, hours: u16) void {
    maker.hours.store(@min(hours, core.layer_copies.CopySchedule.hours_max), .monotonic);
}

/// Runs until the process ends. It must not move.
pub fn start(maker: *CopyMaker) std.Thread.SpawnError!void {
    const thread = try std.Thread.spawn(.{ .stack_size = 1 << 20 }, run, .{maker});
    thread.detach();
}

fn run(maker: *CopyMaker) void {
    const io = maker.peers.io;
    io.sleep(.fromMilliseconds(start_delay_ms), .awake) catch return;
    while (true) {
        maker.turn(nowMs());
        io.sleep(.fromMilliseconds(turn_ms), .awake) catch return;
    }
}

/// Makes the copies if they are due, and returns when that has ended.
pub fn turn(maker: *CopyMaker, now_ms: u64) void {
    if (maker.peers.current() == null) return;
    maker.schedule.hours = maker.hours.load(.monotonic);
    if (!maker.schedule.isDue(now_ms, sys.unixMs())) return;
    // What is written meanwhile is of the next time.
    const begun_unix_ms = sys.unixMs();
    var arguments: store_job.Arguments = .{};
    store_job.writeCopies(&arguments, maker.program, .{
        .store_path = maker.store_path,
        .data_path = maker.data_path,
        .reserve_bytes = maker.reserve_bytes,
    });
    var child = StoreChild.start(&arguments) catch return maker.schedule.postpone(now_ms);
    maker.why = .empty;
    const until_ms = nowMs() + run_limit_ms;
    while (child.read(maker, takeLine) == .more) {
        const left_ms = until_ms -| nowMs();
        if (left_ms == 0) break;
        var polled =
            [_]linux.pollfd{.{ .fd = child.output_fd, .events = linux.POLL.IN, .revents = 0 }};
        _ = linux.poll(&polled, 1, @intCast(left_ms));
    }
    // Ends it if it still runs.
    const code = child.finish();
    // Somebody makes them by hand.
    if (code == store_job.exit_busy) return maker.schedule.postpone(now_ms);
    maker.schedule.onEnd(code == 0, now_ms, begun_unix_ms);
    if (code != 0) return log.info("Not all write caches were copied for another edge: {s}", .{
        if (maker.why.count > 0)
            maker.why.constSlice()
        else
            "run bootfarm-edge vdisk caches copy to see why.",
    });
    var text: [core.layer_copies.CopySchedule.text_size]u8 = undefined;
    maker.data.write(schedule_name, maker.schedule.write(&text)) catch {};
}

fn takeLine(maker: *CopyMaker, line: []const u8) void {
    switch (store_job.parse(line) orelse return) {
        .failed => |message| maker.why = message,
        else => {},
    }
}

fn nowMs() u64 {
    return sys.monotonicUs() / std.time.us_per_ms;
}

const testing = std.testing;

/// Replaces our own program: it fails until a file says otherwise.
const script =
    \\#!/bin/sh
    \\echo "$2 $3 $6 $8 $9 ${10}" >> "$6/runs"
    \\test -e "$6/good" && exit 0
    \\echo '{"error":"the disk fails"}'
    \\exit 1
    \\
;

test "copies are made when they are due and another edge can fetch them, also over a restart" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const options: std.Io.Dir.CreateFileOptions = .{ .permissions = .executable_file };
    var file = try tmp.dir.createFile(testing.io, "program", options);
    try file.writeStreamingAll(testing.io, script);
    file.close(testing.io);
    var buffers: [3][64]u8 = undefined;
    const store_path = try std.mem.print(&buffers[0], ".zig-cache/tmp/{s}", .{&tmp.sub_path});
    const data_path = try std.mem.print(&buffers[1], "{s}/data", .{store_path});
    var data = try DataDir.open(testing.io, data_path);
    defer data.close();
    var peers: SitePeers = .{ .io = testing.io };
    const made: Options = .{
        .peers = &peers,
        .data = &data,
        .store_path = store_path,
        .data_path = data_path,
        .reserve_bytes = 3 << 30,
    };
    var maker: CopyMaker = .init(testing.allocator, made);
    maker.program = try std.mem.print(&buffers[2], "{s}/program", .{store_path});
    maker.turn(0);
    const key = core.uplink.key_text.write(@splat(7));
    const edges = [_]core.site.Edges.EdgeDescription{ .{
        .id = .fromRandom(@splat(1)),
        .weight = 1,
        .subnets = &.{},
        .draining = false,
    }, .{ .id = .fromRandom(@splat(2)), .weight = 1, .subnets = &.{}, .draining = false } };
    peers.set(.init(&.{ .key = &key, .edges = &edges }, edges[0].id));
    maker.turn(0);
    try testing.expectEqualStrings("", maker.why.constSlice());
    maker.setHours(1);
    maker.turn(0);
    try testing.expectEqualStrings("the disk fails", maker.why.constSlice());
    maker.turn(1);
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "good", .data = "" });
    maker.turn(2 * std.time.ms_per_hour);
    maker.turn(2 * std.time.ms_per_hour + 1);
    var restarted: CopyMaker = .init(testing.allocator, made);
    restarted.program = maker.program;
    restarted.setHours(1);
    restarted.turn(0);
    var text: [512]u8 = undefined;
    var line: [192]u8 = undefined;
    const expected = try std.mem.print(
        &line,
        "caches copy {s} {s} --reserve 3145728K\n",
        .{ store_path, data_path },
    );
    const runs = try tmp.dir.readFile(testing.io, "runs", &text);
    try testing.expectEqual(2 * expected.len, runs.len);
    try testing.expect(std.mem.startsWith(u8, runs, expected));
}
