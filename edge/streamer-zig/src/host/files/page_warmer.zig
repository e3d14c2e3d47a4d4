//! Threads that bring pieces of files and of disks into memory, so that the packet loop does not
//! wait when it sends them (sendfile reads the file itself). A piece that is evicted between its
//! reading and its sending is read by whoever sends it.

const std = @import("std");
const sys = @import("../sys.zig");
const store = @import("store");
const HeldDisk = @import("../stream/version_disk.zig").HeldDisk;
const PointerChannel = @import("../stream/pointer_channel.zig");
const Reader = @import("../stream/read_workers.zig").Reader;
const assert = std.debug.assert;
const linux = std.os.linux;

pub const PageWarmer = @This();

/// One piece of a file or a disk; belongs to whoever sends it.
pub const Task = struct {
    /// Held while it is with a thread.
    from: union(enum) { nothing, file: i32, disk: HeldDisk } = .nothing,
    offset: u64 = 0,
    size: u64 = 0,
    is_busy: bool = false,
};

pub const Options = struct {
    /// Returns whether a piece of a file is in memory; tests replace it.
    isInMemory: *const fn (fd: i32, offset: u64, size: usize) bool = isInMemory,
};

const threads_count = 4;

options: Options,
given: PointerChannel,
ended: PointerChannel,
threads: [threads_count]std.Thread = undefined,

pub fn init(options: Options) error{SystemCallFailed}!PageWarmer {
    var given: PointerChannel = try .init(.thread, PointerChannel.count_usual);
    errdefer given.deinit();
    return .{
        .options = options,
        .given = given,
        .ended = try .init(.loop, PointerChannel.count_usual),
    };
}

/// Threads run until `deinit`, or until the process ends.
pub fn run(warmer: *PageWarmer) std.Thread.SpawnError!void {
    for (&warmer.threads) |*thread| thread.* = try std.Thread.spawn(
        .{ .stack_size = 256 << 10 },
        work,
        .{ warmer.given, warmer.ended },
    );
}

/// After `run`: waits until the threads have read what they were given.
pub fn deinit(warmer: *PageWarmer) void {
    warmer.given.end();
    for (warmer.threads) |thread| thread.join();
    while (warmer.takeEnded()) |_| {}
    warmer.given.deinit();
    warmer.ended.deinit();
    warmer.* = undefined;
}

/// Has a thread read a piece of a file. False: it cannot, and the piece is sent as it is. A task
/// stays where it is until `takeEnded` returns it; a pipe has capacity for 8,192 of them.
pub fn start(warmer: *PageWarmer, task: *Task, fd: i32, offset: u64, size: u64) bool {
    assert(!task.is_busy);
    assert(size > 0);
    const own = sys.check(linux.fcntl(fd, linux.F.DUPFD_CLOEXEC, 0)) catch return false;
    warmer.give(task, .{ .from = .{ .file = @intCast(own) }, .offset = offset, .size = size });
    return true;
}

/// Like `start`, of a version in the store; takes the disk.
pub fn startDisk(
    warmer: *PageWarmer,
    task: *Task,
    disk: HeldDisk,
    offset: u64,
    size: u64,
) void {
    assert(size > 0);
    warmer.give(task, .{ .from = .{ .disk = disk }, .offset = offset, .size = size });
}

fn give(warmer: *PageWarmer, task: *Task, piece: Task) void {
    assert(!task.is_busy);
    task.* = piece;
    task.is_busy = true;
    warmer.given.send(Task, task);
}

/// A descriptor that can be read when a piece has been read.
pub fn endedFd(warmer: *const PageWarmer) i32 {
    return warmer.ended.receiveFd();
}

pub fn takeEnded(warmer: *PageWarmer) ?*Task {
    const task = warmer.ended.receive(Task) orelse return null;
    assert(task.is_busy);
    switch (task.from) {
        .nothing => unreachable,
        .file => |fd| sys.close(fd),
        .disk => |*disk| disk.letGo(),
    }
    task.from = .nothing;
    task.is_busy = false;
    return task;
}

/// Nodes of versions' trees in memory, for each thread that reads disks: 256 KiB.
const cache_nodes = 64;
/// Unpacked units in memory, likewise: 256 KiB.
const cache_units = 8;

fn work(given: PointerChannel, ended: PointerChannel) void {
    const gpa = std.heap.page_allocator;
    var reader: ?Reader = null;
    defer if (reader) |*known| known.deinit(gpa);
    while (given.receive(Task)) |task| {
        switch (task.from) {
            .nothing => unreachable,
            .file => |fd| readFile(fd, task),
            .disk => |*disk| {
                if (reader == null) reader = Reader.init(gpa, cache_nodes, cache_units) catch null;
                if (reader) |*known| readDisk(known, disk, task);
            },
        }
        ended.send(Task, task);
    }
}

/// Whoever sends the piece meets the errors.
fn readFile(fd: i32, task: *const Task) void {
    var buffer: [64 << 10]u8 = undefined;
    var at = task.offset;
    const end = task.offset + task.size;
    while (at < end) {
        const wanted: usize = @intCast(@min(buffer.len, end - at));
        const count = sys.check(linux.pread(fd, &buffer, wanted, @intCast(at))) catch |err|
            if (err == error.Interrupted) continue else return;
        if (count == 0) return;
        at += count;
    }
}

/// Like `readFile`, with the blocks checked.
fn readDisk(reader: *Reader, disk: *HeldDisk, task: *const Task) void {
    var buffer: [64 << 10]u8 = undefined;
    var at = task.offset;
    const end = task.offset + task.size;
    while (at < end) {
        const wanted: usize = @intCast(@min(buffer.len, end - at));
        reader.readBelow(disk, buffer[0..wanted], at) catch return;
        at += wanted;
    }
}

/// Asks mincore(2), which answers "yes" for files that this user may not write. Where nothing can
/// be told, the piece counts as in memory.
fn isInMemory(fd: i32, offset: u64, size: usize) bool {
    const page = std.heap.page_size_min;
    const first = std.mem.alignBackward(u64, offset, page);
    const length = std.mem.alignForward(usize, @intCast(offset + size - first), page);
    var pages: [pages_max]u8 = undefined;
    if (length / page > pages.len) return false;
    const shared: std.posix.MAP = .{ .TYPE = .SHARED };
    const mapped = std.posix.mmap(null, length, .{ .READ = true }, shared, fd, first) catch
        return true;
    defer std.posix.munmap(mapped);
    const rc = linux.syscall3(.mincore, @intFromPtr(mapped.ptr), length, @intFromPtr(&pages));
    if (linux.errno(rc) != .SUCCESS) return true;
    for (pages[0 .. length / page]) |flags| if (flags & 1 == 0) return false;
    return true;
}

/// Pages of the largest piece that is asked about, 1 MiB.
const pages_max = (1 << 20) / std.heap.page_size_min;

const testing = std.testing;

test "what was read is in memory, and what a file lacks ends its reading" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const bytes: [3 * 4096 + 17]u8 = @splat(7);
    try tmp.dir.writeFile(testing.io, .{ .sub_path = "file", .data = &bytes });
    const file = try tmp.dir.openFile(testing.io, "file", .{});
    defer file.close(testing.io);
    var warmer: PageWarmer = try .init(.{});
    try warmer.run();
    defer warmer.deinit();
    var task: Task = .{};
    try testing.expect(warmer.start(&task, file.handle, 100, 1 << 20));
    var polled = [_]linux.pollfd{
        .{ .fd = warmer.endedFd(), .events = linux.POLL.IN, .revents = 0 },
    };
    _ = linux.poll(&polled, 1, 30_000);
    try testing.expectEqual(&task, warmer.takeEnded().?);
    try testing.expect(!task.is_busy);
    try testing.expect(isInMemory(file.handle, 4095, 4098));
    try testing.expectEqual(null, warmer.takeEnded());
    try testing.expect(!warmer.start(&task, -1, 0, 1));
}
