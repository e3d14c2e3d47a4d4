//! Watches the file systems of an edge's data directory and store, in a thread of its own: how full
//! they are, whether they are writable, whether another one was mounted over them, and whether they
//! answer. Tells `health`. Retries what the start of the edge could not write, and holds the
//! reserve: a file that only takes space, and gives it up when the disk is full, so that journals,
//! leases and reports can still be written.

const std = @import("std");
const sys = @import("../sys.zig");
const file_system = @import("file_system.zig");
const health = @import("../health.zig");
const DataDir = @import("data_dir.zig");
const ReportLog = @import("report_log.zig").ReportLog;
const Worker = @import("../threads/worker.zig");
const Io = std.Io;
const linux = std.os.linux;

pub const DiskWatch = @This();

const interval_ms = 1000;
/// Rounds between two looks at mounts, and between two attempts to write what is missing.
const slow_rounds = 10;
/// A worker that is in one turn for so many rounds waits for a disk.
const stalled_rounds = 10;
/// After so many rounds without a lost report the log counts as well.
const lossless_rounds = 30;

io: Io,
data: ?*const DataDir = null,
data_path: []const u8 = "",
store_fd: ?i32 = null,
store_path: []const u8 = "",
/// Bytes of the store's file system that write caches leave free; null: `limitOf` decides.
limit_bytes: ?u64 = null,
/// The number of this start, until it is on the disk.
epoch: ?u64 = null,
/// The keys with which devices resume, and to which states are sealed, until they are on the disk.
stream_key: ?[32]u8 = null,
seal_key: ?[32]u8 = null,
log: ?*ReportLog = null,
/// Reports lost so far, and the rounds since the last one was.
lost_reports: u64 = 0,
rounds_since_loss: u32 = lossless_rounds,
/// Writes the journals.
worker: ?*Worker = null,
/// Write caches take no new blocks.
is_short: std.atomic.Value(bool) = .init(false),
rounds: u64 = 0,
busy_turn: ?u64 = null,
busy_rounds: u32 = 0,

/// Returns how much of a file system stays free: 2 GiB or 5 %, whichever is more, but not more than
/// a quarter of a small one.
pub fn limitOf(total_bytes: u64) u64 {
    return @min(@max(2 << 30, total_bytes / 20), total_bytes / 4);
}

/// Looks once, and goes on in a thread until the process ends.
pub fn start(watch: *DiskWatch) std.Thread.SpawnError!void {
    watch.look();
    const thread = try std.Thread.spawn(.{ .stack_size = 256 << 10 }, run, .{watch});
    thread.detach();
}

fn run(watch: *DiskWatch) void {
    while (true) {
        watch.io.sleep(.fromMilliseconds(interval_ms), .awake) catch return;
        watch.look();
    }
}

/// One round.
pub fn look(watch: *DiskWatch) void {
    const is_slow_round = watch.rounds % slow_rounds == 0;
    watch.rounds += 1;
    if (watch.data) |data| {
        _ = lookAt(data.dir.handle, watch.limit_bytes, .data_unwritable, .data_low_space);
        if (file_system.spaceOf(data.dir.handle)) |space| Reserve.adjust(data, &space) else |_| {}
        if (is_slow_round) {
            const is_same = isSame(data.dir.handle, watch.data_path);
            health.set(.data_replaced, !is_same);
            watch.retry(data);
        }
    }
    if (watch.store_fd) |fd| {
        const is_short = lookAt(fd, watch.limit_bytes, .store_unwritable, .store_low_space);
        watch.is_short.store(is_short, .monotonic);
        if (is_slow_round) health.set(.store_replaced, !isSame(fd, watch.store_path));
    }
    if (watch.log) |log| watch.lookAtLog(log.published_losses.load(.monotonic));
    if (watch.worker) |worker| watch.lookAtWorker(worker);
}

/// Returns whether less than the limit is free.
fn lookAt(
    fd: i32,
    limit_bytes: ?u64,
    unwritable: health.Problem,
    low: health.Problem,
) bool {
    const space = file_system.spaceOf(fd) catch {
        health.set(unwritable, true);
        return true;
    };
    health.set(unwritable, space.is_read_only);
    const limit = limit_bytes orelse limitOf(space.total_bytes);
    // Once short, an eighth more has to be free, so that it does not change all the time.
    const was_short = health.has(low);
    const is_short = space.available_bytes < if (was_short) limit + limit / 8 else limit;
    health.set(low, is_short);
    return is_short;
}

/// Writes what could not be written at the start.
fn retry(watch: *DiskWatch, data: *const DataDir) void {
    if (watch.epoch) |epoch| if (data.keepEpoch(epoch)) {
        watch.epoch = null;
        health.set(.epoch_not_kept, false);
    };
    retryKey(data, "stream.key", .stream_key_not_kept, &watch.stream_key);
    retryKey(data, "seal.key", .seal_key_not_kept, &watch.seal_key);
}

fn retryKey(
    data: *const DataDir,
    comptime name: [:0]const u8,
    problem: health.Problem,
    pending: *?[32]u8,
) void {
    const key = pending.* orelse return;
    data.writeSecret(name, key) catch return;
    pending.* = null;
    health.set(problem, false);
}

fn lookAtLog(watch: *DiskWatch, lost: u64) void {
    watch.rounds_since_loss = if (lost > watch.lost_reports) 0 else watch.rounds_since_loss +| 1;
    watch.lost_reports = lost;
    health.set(.reports_not_kept, watch.rounds_since_loss < lossless_rounds);
}

fn lookAtWorker(watch: *DiskWatch, worker: *Worker) void {
    const turn = worker.busyTurn();
    watch.busy_rounds = if (turn != null and turn == watch.busy_turn) watch.busy_rounds + 1 else 0;
    watch.busy_turn = turn;
    health.set(.disk_stalled, watch.busy_rounds >= stalled_rounds);
}

/// Returns whether a path still leads to an open directory.
fn isSame(fd: i32, path: []const u8) bool {
    var buffer: [linux.PATH_MAX:0]u8 = undefined;
    if (path.len >= buffer.len) return true;
    @memcpy(buffer[0..path.len], path);
    buffer[path.len] = 0;
    const there = identityOf(linux.AT.FDCWD, buffer[0..path.len :0]) orelse return false;
    const open = identityOf(fd, "") orelse return false;
    return std.meta.eql(there, open);
}

const Identity = struct { major: u32, minor: u32, inode: u64 };

fn identityOf(fd: i32, path: [:0]const u8) ?Identity {
    var stat: linux.Statx = undefined;
    const rc = linux.statx(fd, path, linux.AT.EMPTY_PATH, .{ .INO = true }, &stat);
    if (linux.errno(rc) != .SUCCESS) return null;
    return .{ .major = stat.dev_major, .minor = stat.dev_minor, .inode = stat.ino };
}

/// The file that only takes space.
pub const Reserve = struct {
    const name = "reserve";
    const size_max = 32 << 20;

    fn sizeOf(space: *const file_system.Space) u64 {
        return @min(size_max, space.total_bytes / 16) & ~@as(u64, 4095);
    }

    /// Gives the space up where less than a quarter of it is free, and takes it again when four
    /// times as much is.
    pub fn adjust(data: *const DataDir, space: *const file_system.Space) void {
        const size = sizeOf(space);
        if (space.is_read_only or size == 0) return;
        if (space.available_bytes < size / 4)
            resize(data.dir.handle, 0)
        else if (space.available_bytes > 4 * size)
            resize(data.dir.handle, size);
    }

    fn resize(dir_fd: i32, size: u64) void {
        const flags: linux.O = .{ .ACCMODE = .RDWR, .CREAT = size > 0, .CLOEXEC = true };
        const fd: i32 = @intCast(
            sys.check(linux.openat(dir_fd, name, flags, 0o600)) catch return,
        );
        defer sys.close(fd);
        const now = sys.check(linux.lseek(fd, 0, linux.SEEK.END)) catch return;
        if (now == size) return;
        // A file system that cannot allocate ahead has no reserve.
        if (size == 0 or linux.errno(linux.fallocate(fd, 0, 0, @intCast(size))) != .SUCCESS)
            _ = linux.ftruncate(fd, 0);
    }
};

const testing = std.testing;

test "a small file system keeps a quarter free, a usual one 2 GiB, a large one 5 %" {
    const gib = 1 << 30;
    try testing.expectEqual(gib / 4, limitOf(gib));
    try testing.expectEqual(2 * gib, limitOf(8 * gib));
    try testing.expectEqual(2 * gib, limitOf(40 * gib));
    try testing.expectEqual(50 * gib, limitOf(1000 * gib));
}

test "the reserve is given up on a full disk, and taken again when there is space" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    const path = buffer[0..try tmp.dir.realPath(testing.io, &buffer)];
    var data = try DataDir.open(testing.io, path);
    defer data.close();
    var space: file_system.Space =
        .{ .total_bytes = 16 << 20, .free_bytes = 8 << 20, .available_bytes = 8 << 20 };
    Reserve.adjust(&data, &space);
    try testing.expectEqual(1 << 20, (try data.dir.statFile(testing.io, "reserve", .{})).size);
    space.available_bytes = 300 << 10;
    Reserve.adjust(&data, &space);
    try testing.expectEqual(1 << 20, (try data.dir.statFile(testing.io, "reserve", .{})).size);
    space.available_bytes = 200 << 10;
    Reserve.adjust(&data, &space);
    try testing.expectEqual(0, (try data.dir.statFile(testing.io, "reserve", .{})).size);
    space.available_bytes = 4 << 20;
    Reserve.adjust(&data, &space);
    try testing.expectEqual(0, (try data.dir.statFile(testing.io, "reserve", .{})).size);
    space.available_bytes += 1;
    Reserve.adjust(&data, &space);
    try testing.expectEqual(1 << 20, (try data.dir.statFile(testing.io, "reserve", .{})).size);
}

test "write caches stop at the limit, and go on an eighth above it" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var watch: DiskWatch = .{ .io = testing.io, .store_fd = tmp.dir.handle, .store_path = "/" };
    const space = try file_system.spaceOf(tmp.dir.handle);
    watch.limit_bytes = space.total_bytes * 2;
    watch.look();
    try testing.expect(watch.is_short.load(.monotonic) and health.has(.store_low_space));
    // Another directory is where the store was.
    try testing.expect(health.has(.store_replaced));
    watch.limit_bytes = space.available_bytes / 2;
    var buffer: [8192]u8 = undefined;
    watch.store_path = buffer[0..try tmp.dir.realPath(testing.io, &buffer)];
    watch.rounds = slow_rounds;
    watch.look();
    try testing.expect(!watch.is_short.load(.monotonic));
    try testing.expectEqual(0, health.list().size);
}

test "what the start could not write is written as soon as the disk takes it" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var buffer: [8192]u8 = undefined;
    const path = buffer[0..try tmp.dir.realPath(testing.io, &buffer)];
    var data = try DataDir.open(testing.io, path);
    defer data.close();
    try data.dir.createDir(testing.io, "epoch", .default_dir);
    try data.dir.createDir(testing.io, "stream.key.new", .default_dir);
    var watch: DiskWatch = .{
        .io = testing.io,
        .data = &data,
        .data_path = path,
        .limit_bytes = 0,
        .epoch = 41,
        .stream_key = @splat(7),
    };
    health.set(.epoch_not_kept, true);
    health.set(.stream_key_not_kept, true);
    watch.look();
    try testing.expect(health.has(.epoch_not_kept) and health.has(.stream_key_not_kept));
    try data.dir.deleteDir(testing.io, "epoch");
    try data.dir.deleteDir(testing.io, "stream.key.new");
    watch.look();
    try testing.expect(health.has(.epoch_not_kept));
    watch.rounds = slow_rounds;
    watch.look();
    try testing.expectEqual(0, health.list().size);
    try testing.expectEqual(DataDir.Epoch{ .number = 42, .is_kept = true }, data.nextEpoch(0, 0));
    try testing.expectEqual(@as([32]u8, @splat(7)), try data.secret("stream.key"));
}

test "a lost report is a problem for half a minute" {
    var watch: DiskWatch = .{ .io = testing.io };
    watch.lookAtLog(0);
    try testing.expect(!health.has(.reports_not_kept));
    watch.lookAtLog(2);
    for (1..lossless_rounds) |_| watch.lookAtLog(2);
    try testing.expect(health.has(.reports_not_kept));
    watch.lookAtLog(3);
    for (0..lossless_rounds) |_| watch.lookAtLog(3);
    try testing.expect(!health.has(.reports_not_kept));
}
