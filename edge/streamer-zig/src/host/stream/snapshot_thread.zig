//! A thread that takes snapshots of write layers which devices are writing to, one at a time, for
//! `bootfarm-edge vdisk caches snapshot`. It opens what a snapshot needs, asks the packet loop for
//! the moment, and reads all blocks; the loop waits for none of it. A command that ends, or takes
//! nothing for a minute, ends its snapshot.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const write_caches = @import("agent").write_caches;
const sys = @import("../sys.zig");
const file_system = @import("../files/file_system.zig");
const DiskWatch = @import("../files/disk_watch.zig");
const snapshot_socket = @import("snapshot_socket.zig");
const linux = std.os.linux;
const Io = std.Io;
const Uuid = base.Uuid;

const Failure = snapshot_socket.Failure;
const LayerSnapshot = store.LayerSnapshot;
const Order = write_caches.SnapshotOrder;
const Answer = write_caches.SnapshotAnswer;

pub const SnapshotThread = @This();

/// A command whose disk takes nothing for so long is gone.
const patience_s = 60;
/// A device should not be slowed down for days by a disk that is too slow.
const time_limit_us = 6 * std.time.us_per_hour;
/// A piece, and the heads of a file.
const text_size = (LayerSnapshot.piece_blocks << 12) + 4096;

gpa: std.mem.Allocator,
io: Io,
files: store.Files,
store_fd: i32,
/// Bytes of the store's file system that write caches leave free; null: the usual.
reserve_bytes: ?u64,
listener: i32,
text: []u8,
mutex: Io.Mutex = .init,
/// What the packet loop is to do.
current: ?Order = null,
answer: Answer = undefined,
answered: Io.Event = .unset,

pub const Options = struct {
    io: Io,
    files: store.Files,
    store_fd: i32,
    reserve_bytes: ?u64,
};

pub fn create(
    gpa: std.mem.Allocator,
    options: Options,
) error{ OutOfMemory, SystemCallFailed }!*SnapshotThread {
    const thread = try gpa.create(SnapshotThread);
    errdefer gpa.destroy(thread);
    const text = try gpa.alloc(u8, text_size);
    errdefer gpa.free(text);
    thread.* = .{
        .gpa = gpa,
        .io = options.io,
        .files = options.files,
        .store_fd = options.store_fd,
        .reserve_bytes = options.reserve_bytes,
        .listener = try snapshot_socket.listen(options.store_fd),
        .text = text,
    };
    return thread;
}

/// Runs until the process ends.
pub fn start(thread: *SnapshotThread) std.Thread.SpawnError!void {
    const spawned = try std.Thread.spawn(.{ .stack_size = 256 << 10 }, run, .{thread});
    spawned.detach();
}

/// Called by the packet loop.
pub fn order(thread: *SnapshotThread) ?Order {
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    return thread.current;
}

/// Called by the packet loop, once for each order.
pub fn setAnswer(thread: *SnapshotThread, answer: Answer) void {
    {
        thread.mutex.lockUncancelable(thread.io);
        defer thread.mutex.unlock(thread.io);
        thread.current = null;
        thread.answer = answer;
    }
    thread.answered.set(thread.io);
}

/// Waits for the packet loop, which looks once a second.
fn ask(thread: *SnapshotThread, given: Order) Answer {
    thread.answered.reset();
    {
        thread.mutex.lockUncancelable(thread.io);
        defer thread.mutex.unlock(thread.io);
        thread.current = given;
    }
    thread.answered.waitUncancelable(thread.io);
    thread.mutex.lockUncancelable(thread.io);
    defer thread.mutex.unlock(thread.io);
    return thread.answer;
}

fn run(thread: *SnapshotThread) void {
    yieldDisk();
    while (true) {
        const request = snapshot_socket.accept(thread.listener, patience_s) catch return;
        defer sys.close(request.fd);
        const name = request.layer orelse {
            snapshot_socket.sendFailure(request.fd, .unknown_request, 0) catch {};
            continue;
        };
        thread.serve(request.fd, name);
    }
}

/// The disk is for devices first. Not the processor: the thread shares a lock with those that
/// write.
fn yieldDisk() void {
    const who_process = 1;
    const lowest_of_usual = 2 << 13 | 7;
    _ = linux.syscall3(.ioprio_set, who_process, 0, lowest_of_usual);
}

fn serve(thread: *SnapshotThread, fd: i32, name: Uuid) void {
    var buffer: store.files.Name = undefined;
    const dir = store.device_layers.dirOf(name, &buffer);
    var snapshot: LayerSnapshot = LayerSnapshot.openWritten(
        thread.gpa,
        thread.io,
        thread.files,
        dir,
        thread.freeBytesMin(),
    ) catch |err| return sendFailure(fd, err, 0);
    defer snapshot.close();
    var wanted: Order = .{ .layer = name, .snapshot = &snapshot, .is_over = false };
    switch (thread.ask(wanted)) {
        .begun => {},
        .not_open, .let_go => return snapshot_socket.sendFailure(fd, .not_open, 0) catch {},
        .lost => return snapshot_socket.sendFailure(fd, .lost, 0) catch {},
    }
    const result = thread.send(fd, &snapshot);
    // The layer keeps nothing for it from now on.
    wanted.is_over = true;
    _ = thread.ask(wanted);
    const blocks = result catch |err| return sendFailure(fd, err, snapshot.rotten_at);
    snapshot_socket.sendEnd(fd, blocks) catch {};
}

/// Well above what ends the writes of devices: copies, and a file on the same disk, must not do so.
fn freeBytesMin(thread: *const SnapshotThread) u64 {
    const space = file_system.spaceOf(thread.store_fd) catch return 0;
    const reserve = thread.reserve_bytes orelse DiskWatch.limitOf(space.total_bytes);
    return reserve +| reserve / 4;
}

const SendFailure = LayerSnapshot.OpenError || LayerSnapshot.Error || error{ Gone, TooSlow };

fn send(thread: *SnapshotThread, fd: i32, snapshot: *LayerSnapshot) SendFailure!u64 {
    const started_us = sys.monotonicUs();
    var text: std.Io.Writer = .fixed(thread.text);
    // All of these fit.
    var exporting = store.layer_file.Export.begin(&text, &snapshot.head) catch unreachable;
    while (try snapshot.read()) {
        const piece = try snapshot.take() orelse continue;
        exporting.add(&piece) catch unreachable;
        const done = snapshot.at * store.WriteLayer.block_size;
        try snapshot_socket.sendBytes(fd, text.buffered(), done);
        text.end = 0;
        if (sys.monotonicUs() - started_us > time_limit_us) return error.TooSlow;
    }
    const blocks = exporting.end() catch unreachable;
    try snapshot_socket.sendBytes(fd, text.buffered(), snapshot.head.binding.disk_size);
    return blocks;
}

fn sendFailure(fd: i32, err: SendFailure, at: u64) void {
    const failure: Failure = switch (err) {
        error.Lost, error.NotFound => .lost,
        error.Damaged => .damaged,
        error.NewerFormat => .newer_format,
        error.Rotten => .rotten,
        error.Ended => .ended,
        error.OverLimit => .over_limit,
        error.NoSpace => .no_space,
        error.OutOfMemory => .out_of_memory,
        error.TooSlow => .too_slow,
        error.InUse => .not_open,
        error.Exists,
        error.ReadOnly,
        error.Denied,
        error.TooManyFiles,
        error.DiskFailed,
        => .disk_failed,
        error.Gone => return,
    };
    snapshot_socket.sendFailure(fd, failure, at) catch {};
}

const testing = std.testing;

/// A store with a written layer, and a thread that takes snapshots of it. Must not move.
const ThreadFixture = struct {
    tmp: testing.TmpDir,
    on: store.LinuxFiles,
    layer: store.WriteLayer,
    thread: *SnapshotThread,
    client: std.Thread = undefined,
    received: std.ArrayList(u8) = .empty,
    last: snapshot_socket.Packet = undefined,

    const name: Uuid = .fromRandom(@splat(7));
    const disk_size = 600 << 12;
    const gpa = testing.allocator;

    fn init(fixture: *ThreadFixture) !void {
        fixture.* = .{
            .tmp = testing.tmpDir(.{}),
            .on = undefined,
            .layer = undefined,
            .thread = undefined,
        };
        fixture.on = .fromFd(fixture.tmp.dir.handle);
        const files = fixture.on.files();
        try files.makeDir(store.device_layers.parent);
        var buffer: store.files.Name = undefined;
        const dir = store.device_layers.dirOf(name, &buffer);
        fixture.layer = try .create(gpa, files, dir, .{
            .layer_id = .fromBytes(@splat(1)),
            .binding = .{
                .class = .edge_persistent,
                .device_id = name,
                .version_id = .fromBytes(@splat(3)),
                .disk_size = disk_size,
            },
            .limit_bytes = 1 << 30,
            .sequence = 0,
        }, .{ .context = undefined, .vtable = &.{ .read = readNothing }, .size = disk_size });
        fixture.thread = try .create(gpa, .{
            .io = testing.io,
            .files = files,
            .store_fd = fixture.tmp.dir.handle,
            .reserve_bytes = 0,
        });
    }

    fn readNothing(_: *anyopaque, _: []u8, _: u64) store.block_source.ReadError!void {
        return error.ReadFailed;
    }

    fn deinit(fixture: *ThreadFixture) void {
        fixture.layer.close(gpa);
        sys.close(fixture.thread.listener);
        gpa.free(fixture.thread.text);
        gpa.destroy(fixture.thread);
        fixture.received.deinit(gpa);
        fixture.tmp.cleanup();
    }

    fn receiveAll(fixture: *ThreadFixture) !void {
        const fd = try snapshot_socket.connect(fixture.tmp.dir.handle, name, 30);
        defer sys.close(fd);
        const buffer = try gpa.create(snapshot_socket.Buffer);
        defer gpa.destroy(buffer);
        while (true) {
            const packet = try snapshot_socket.receive(fd, buffer) orelse continue;
            fixture.last = packet;
            if (packet != .bytes) return;
            try fixture.received.appendSlice(gpa, packet.bytes.bytes);
        }
    }

    fn receive(fixture: *ThreadFixture) void {
        fixture.receiveAll() catch |err| std.debug.panic("receiving: {t}", .{err});
    }

    /// What `run` does for one command.
    fn serveOne(thread: *SnapshotThread) void {
        const request = snapshot_socket.accept(thread.listener, 30) catch unreachable;
        defer sys.close(request.fd);
        thread.serve(request.fd, request.layer.?);
    }

    fn nextOrder(fixture: *ThreadFixture) Order {
        while (true) return fixture.thread.order() orelse {
            testing.io.sleep(.fromMilliseconds(1), .awake) catch unreachable;
            continue;
        };
    }
};

test "a snapshot goes to its command while the layer is written, and the loop lets it go" {
    var fixture: ThreadFixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const first: [100 << 12]u8 = @splat(1);
    for (0..6) |index| try fixture.layer.write(&first, index * first.len);
    const client = try std.Thread.spawn(.{}, ThreadFixture.receive, .{&fixture});
    const server = try std.Thread.spawn(.{}, ThreadFixture.serveOne, .{fixture.thread});
    const begin = fixture.nextOrder();
    try testing.expect(begin.layer.eql(ThreadFixture.name) and !begin.is_over);
    try begin.snapshot.begin(&fixture.layer);
    fixture.thread.setAnswer(.begun);
    const later: [50 << 12]u8 = @splat(2);
    for (0..12) |index| try fixture.layer.write(&later, (11 - index) * later.len);
    const end = fixture.nextOrder();
    try testing.expect(end.is_over and end.snapshot == begin.snapshot);
    end.snapshot.end(&fixture.layer);
    fixture.thread.setAnswer(.let_go);
    client.join();
    server.join();
    try testing.expectEqual(600, fixture.last.end.blocks);
    var reader: std.Io.Reader = .fixed(fixture.received.items);
    const head: store.layer_file.FileHead = try .take(&reader);
    var nothing: u8 = 0;
    _ = try store.layer_file.importLayer(
        testing.allocator,
        fixture.on.files(),
        "imported",
        &reader,
        &head,
        .fromBytes(@splat(9)),
        .{ .context = &nothing, .call = goOn },
    );
    const data = try fixture.on.files().open("imported/data", .read);
    defer fixture.on.files().close(data);
    const bytes = try testing.allocator.alloc(u8, ThreadFixture.disk_size);
    defer testing.allocator.free(bytes);
    try testing.expect(try fixture.on.files().readWhole(data, bytes, 0));
    try testing.expect(std.mem.allEqual(u8, bytes, 1));
}

fn goOn(_: *anyopaque, _: u64, _: u64) bool {
    return true;
}

test "a layer that is not open, or is lost in the middle, gives its command the reason" {
    var fixture: ThreadFixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    try fixture.layer.write(&@as([4096]u8, @splat(1)), 0);
    for ([_]Failure{ .not_open, .ended }) |expected| {
        const client = try std.Thread.spawn(.{}, ThreadFixture.receive, .{&fixture});
        const server = try std.Thread.spawn(.{}, ThreadFixture.serveOne, .{fixture.thread});
        const begin = fixture.nextOrder();
        if (expected == .ended) {
            try begin.snapshot.begin(&fixture.layer);
            begin.snapshot.end(&fixture.layer);
            fixture.thread.setAnswer(.begun);
            try testing.expect(fixture.nextOrder().is_over);
            fixture.thread.setAnswer(.let_go);
        } else fixture.thread.setAnswer(.not_open);
        client.join();
        server.join();
        try testing.expectEqual(expected, fixture.last.failed.failure);
    }
}
