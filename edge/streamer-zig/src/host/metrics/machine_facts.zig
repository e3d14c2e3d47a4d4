//! Reads the size and the load of this machine for the heartbeat (proc(5), statfs(2)).

const std = @import("std");
const core = @import("core");
const file_system = @import("../files/file_system.zig");
const sys = @import("../sys.zig");
const linux = std.os.linux;
const Machine = core.uplink.message.Machine;

/// Returns null if the system does not tell. `store_fd` is the directory where vDisks are.
pub fn read(store_fd: i32) ?Machine {
    var buffer: [8192]u8 = undefined;
    const load = parseLoad(readFile("/proc/loadavg", &buffer) orelse return null) orelse
        return null;
    const memory = readFile("/proc/meminfo", &buffer) orelse return null;
    const store = file_system.spaceOf(store_fd) catch return null;
    return .{
        .loadAverage = load,
        .processors = std.Thread.getCpuCount() catch 1,
        .memoryTotalBytes = memoryBytes(memory, "MemTotal:") orelse return null,
        .memoryAvailableBytes = memoryBytes(memory, "MemAvailable:") orelse return null,
        .fileCacheBytes = memoryBytes(memory, "Cached:") orelse return null,
        .storeTotalBytes = store.total_bytes,
        .storeFreeBytes = store.available_bytes,
    };
}

/// Returns the bytes that a program could still get.
pub fn memoryAvailable() ?u64 {
    var buffer: [8192]u8 = undefined;
    return memoryBytes(readFile("/proc/meminfo", &buffer) orelse return null, "MemAvailable:");
}

/// Returns the memory that this process may use: that of the machine, or of its container or unit
/// where that is less.
pub fn memoryTotal() ?u64 {
    var buffer: [8192]u8 = undefined;
    const text = readFile("/proc/meminfo", &buffer) orelse return null;
    const total = memoryBytes(text, "MemTotal:") orelse return null;
    return @min(total, memoryOfGroup() orelse total);
}

/// Returns the limit of the control group (cgroups(7), version 2); null: there is none.
fn memoryOfGroup() ?u64 {
    var buffer: [4096]u8 = undefined;
    const group = readFile("/proc/self/cgroup", &buffer) orelse return null;
    const path = std.mem.cutPrefix(u8, std.mem.trimEnd(u8, group, "\n"), "0::") orelse return null;
    var name: [4200]u8 = undefined;
    const file = std.mem.printSentinel(&name, "/sys/fs/cgroup{s}/memory.max", .{path}, 0) catch
        return null;
    var limit: [64]u8 = undefined;
    const text = readFile(file, &limit) orelse return null;
    return std.fmt.parseInt(u64, std.mem.trimEnd(u8, text, "\n"), 10) catch null;
}

fn parseLoad(text: []const u8) ?f64 {
    var fields = std.mem.tokenizeScalar(u8, text, ' ');
    const load = std.fmt.parseFloat(f64, fields.next() orelse return null) catch return null;
    return if (load >= 0 and load <= 1_000_000) load else null;
}

fn memoryBytes(text: []const u8, name: []const u8) ?u64 {
    var lines = std.mem.tokenizeScalar(u8, text, '\n');
    while (lines.next()) |line| {
        const rest = std.mem.cutPrefix(u8, line, name) orelse continue;
        const digits = std.mem.cutSuffix(u8, std.mem.trim(u8, rest, " "), " kB") orelse return null;
        return (std.fmt.parseInt(u64, digits, 10) catch return null) *| 1024;
    }
    return null;
}

fn readFile(path: [*:0]const u8, buffer: []u8) ?[]const u8 {
    const rc = linux.openat(linux.AT.FDCWD, path, .{ .CLOEXEC = true }, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return null);
    defer sys.close(fd);
    const size = sys.check(linux.read(fd, buffer.ptr, buffer.len)) catch return null;
    return buffer[0..size];
}

test "this machine reports its size" {
    var tmp = std.testing.tmpDir(.{});
    defer tmp.cleanup();
    const machine = read(tmp.dir.handle).?;
    try std.testing.expect(machine.processors > 0);
    try std.testing.expect(machine.memoryAvailableBytes <= machine.memoryTotalBytes);
    try std.testing.expect(machine.storeFreeBytes <= machine.storeTotalBytes and
        machine.storeTotalBytes > 0);
}

test "load and memory are parsed as the kernel writes them" {
    try std.testing.expectEqual(0.52, parseLoad("0.52 0.58 0.59 1/1234 5678\n").?);
    try std.testing.expect(parseLoad("") == null);
    const text =
        "MemTotal:        8000000 kB\nSwapCached:            1 kB\nCached:          3000000 kB\n";
    try std.testing.expectEqual(8_000_000 * 1024, memoryBytes(text, "MemTotal:").?);
    try std.testing.expectEqual(3_000_000 * 1024, memoryBytes(text, "Cached:").?);
    try std.testing.expect(memoryBytes(text, "MemFree:") == null);
}
