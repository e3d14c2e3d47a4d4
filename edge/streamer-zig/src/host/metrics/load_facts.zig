//! How much this edge and its machine work, for the heartbeat: what the packet loop counts, the
//! times of the processors (/proc/stat, proc(5)), and the speed of the interface that devices reach
//! (/sys/class/net/NAME/speed).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const metrics_page = @import("page.zig");
const sockets = @import("../net/sockets.zig");
const sys = @import("../sys.zig");
const linux = std.os.linux;
const Load = core.uplink.message.Load;

/// What the packet loop counts.
pub fn of(figures: *const metrics_page.LoopFigures) Load {
    return .{
        .streams = figures.streams_open,
        .tftpBytes = figures.tftp_bytes % Load.counter_end,
        .httpBytes = figures.http_bytes % Load.counter_end,
        .streamBytes = figures.stream_bytes % Load.counter_end,
        .reads = figures.stream_reads % Load.counter_end,
        .coldReads = figures.stream_cold_reads % Load.counter_end,
        .coldReadUs = figures.stream_cold_us % Load.counter_end,
    };
}

/// Adds what the system tells. `address` is the one that devices reach.
pub fn addMachine(load: *Load, address: base.Ip4) void {
    if (processorTimes()) |times| {
        load.processorMs = times.total_ms;
        load.processorBusyMs = times.busy_ms;
    }
    load.linkMbps = linkMbps(address);
}

const ProcessorTimes = struct { total_ms: u64, busy_ms: u64 };

fn processorTimes() ?ProcessorTimes {
    var buffer: [1024]u8 = undefined;
    return parseTimes(sys.readFile("/proc/stat", &buffer) catch return null);
}

/// Linux counts for programs in hundredths of a second, on all processors that edges run on.
const tick_ms = 10;

/// Of `cpu  user nice system idle iowait irq softirq steal guest guest_nice`: guests are part of
/// user and nice. Work with a nice value yields to all other, as that of stores does: the edge has
/// this time when it needs it. Time that a hypervisor gave to others (steal) it has not.
fn parseTimes(text: []const u8) ?ProcessorTimes {
    const line = text[0 .. std.mem.findScalar(u8, text, '\n') orelse return null];
    const numbers = std.mem.cutPrefix(u8, line, "cpu ") orelse return null;
    var fields = std.mem.tokenizeScalar(u8, numbers, ' ');
    var times: ProcessorTimes = .{ .total_ms = 0, .busy_ms = 0 };
    for (0..8) |index| {
        const ticks = std.fmt.parseInt(u64, fields.next() orelse return null, 10) catch return null;
        times.total_ms +|= ticks *| tick_ms;
        const is_free = index == 1 or index == 3 or index == 4;
        if (!is_free) times.busy_ms +|= ticks *| tick_ms;
    }
    return times;
}

/// Null: the interface has no speed of its own, or no cable.
fn linkMbps(address: base.Ip4) ?u64 {
    const found = sockets.interfaceOf(address) catch return null;
    const interface = found orelse return null;
    var path: [64]u8 = undefined;
    const name = std.mem.printSentinel(
        &path,
        "/sys/class/net/{s}/speed",
        .{interface.name()},
        0,
    ) catch return null;
    var buffer: [32]u8 = undefined;
    return parseSpeed(sys.readFile(name, &buffer) catch return null);
}

/// An interface that does not know its speed says -1, as 32 bits where the kernel is older.
fn parseSpeed(text: []const u8) ?u64 {
    const speed = std.fmt.parseInt(u32, std.mem.trimEnd(u8, text, "\n"), 10) catch return null;
    return if (speed == 0 or speed == std.math.maxInt(u32)) null else speed;
}

const testing = std.testing;

test "the time of the processors is parsed as the kernel writes it" {
    const text =
        "cpu  100 20 30 4000 500 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
    const times = parseTimes(text).?;
    try testing.expectEqual(10 * (100 + 20 + 30 + 4000 + 500 + 6 + 7 + 8), times.total_ms);
    try testing.expectEqual(10 * (100 + 30 + 6 + 7 + 8), times.busy_ms);
    const bad = [_][]const u8{
        "", "\n", "cpu  1 2 3\n", "cpu  1 2 3 4 5 6 7 x\n", "cpu0 1 2 3 4 5 6 7 8\n",
    };
    for (bad) |line| try testing.expect(parseTimes(line) == null);
}

test "this machine reports the time of its processors, which passes" {
    const before = processorTimes().?;
    try testing.expect(before.busy_ms <= before.total_ms);
    try testing.expect(before.total_ms > 0);
    const after = processorTimes().?;
    try testing.expect(after.busy_ms >= before.busy_ms);
}

test "an interface without a speed has none" {
    try testing.expectEqual(10_000, parseSpeed("10000\n").?);
    for ([_][]const u8{ "-1\n", "4294967295\n", "0\n", "", "fast\n" }) |none|
        try testing.expect(parseSpeed(none) == null);
    try testing.expect(linkMbps(.init(127, 0, 0, 1)) == null);
    try testing.expect(linkMbps(.init(203, 0, 113, 7)) == null);
}

test "a counter that JSON cannot say exactly begins again" {
    const load = of(&.{
        .streams_open = 3,
        .stream_bytes = (1 << 53) + 5,
        .stream_reads = 7,
        .stream_cold_reads = 2,
        .stream_cold_us = 900,
    });
    try testing.expectEqual(5, load.streamBytes);
    try testing.expectEqual(3, load.streams);
    try testing.expectEqual(7, load.reads);
    try testing.expectEqual(2, load.coldReads);
    try testing.expectEqual(900, load.coldReadUs);
}
