//! One shard of the stream: a thread with its own socket on the stream's port that serves the READs
//! of its sessions, from memory by itself and from disks by its own threads. It shares nothing with
//! other shards. With the packet loop, which opens the sessions and keeps their boots, it shares
//! three bounded rings and each session's packet counter. It allocates nothing after its start, and
//! never waits for the packet loop (docs/decisions/0022-stream-shards.md).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const shard_messages = @import("shard_messages.zig");
const StreamReads = @import("reads.zig");
const stream_sending = @import("sending.zig");
const sys = @import("../sys.zig");
const UdpSocket = @import("../net/udp_socket.zig");
const agent = @import("agent");
const Arrival = @import("read_queue.zig").Arrival;
const Epoll = @import("../net/epoll.zig");
const SpscRing = @import("spsc_ring.zig").SpscRing;
const VersionDisk = @import("version_disk.zig").VersionDisk;
const assert = std.debug.assert;
const linux = std.os.linux;

const ReadRequest = core.stream.Server.ReadRequest;
const StreamServer = core.stream.Server;

pub const StreamShard = @This();

server: StreamServer,
socket: *UdpSocket,
reads: StreamReads,
sealed: []u8,
reply: StreamServer.ReplyBuffer = undefined,
epoll: Epoll,
busy: Epoll.Busy,
/// The packet loop has written commands, or wants the shard to stop.
wake_fd: i32,
/// The packet loop's.
loop_wake_fd: i32,
commands: SpscRing(shard_messages.Command),
events: SpscRing(shard_messages.ReadEvent),
forwarded: SpscRing(shard_messages.Forwarded),
ends: std.atomic.Value(bool) = .init(false),
/// The system refused what the shard needs: the edge stops.
has_failed: std.atomic.Value(bool) = .init(false),
disks: []?Disk,
cache: store.node_cache.NodeCache,
units: store.UnitCache,
/// The files of the first version's store: an edge has one store.
files: ?Files = null,
figures: shard_messages.Figures = .{},
/// For readers in other threads.
published: shard_messages.Figures = .{},
published_at_us: u64 = 0,
has_unpublished: bool = true,
/// Events were emitted for which the packet loop was not woken yet.
must_wake: bool = false,
woke_at_us: u64 = 0,
thread: ?std.Thread = null,

const Disk = struct { version_id: base.Uuid, disk: VersionDisk };
const Files = struct { data: store.file_set.FileSet, nodes: store.file_set.FileSet };

pub const Options = struct {
    versions: u32 = 64,
    /// 8 MiB, for more than 0.8 GiB of blocks that devices read.
    cache_nodes: u32 = 2048,
    /// Unpacked units that devices read: 64 MiB, taken as they come.
    cache_units: u32 = 2048,
    reads: StreamReads.Options = .{ .workers = .{ .threads = 4, .tasks = 8 } },
};

/// As many commands as sessions may change in a burst; further ones are sent later.
const commands_max = 64;
/// Three for a READ: a third of a second at 1 GB/s in reads of 32 KiB; 7 MB.
const events_max = 1 << 15;
const forwarded_max = 128;
/// The shortest interval at which events wake the packet loop.
const wake_interval_us = 2000;
const publish_interval_us = 250_000;

const Token = struct {
    const wake = 0;
    const stream = 1;
    const disk_reads = 2;
};

pub const InitError = StreamReads.InitError;

/// `server` has as many slots as the packet loop's; the shard owns it, but not its socket.
pub fn init(
    gpa: std.mem.Allocator,
    server: StreamServer,
    socket: *UdpSocket,
    loop_wake_fd: i32,
    options: Options,
) InitError!StreamShard {
    var reads_options = options.reads;
    reads_options.queue.flows = @intCast(server.sessions.len);
    var reads: StreamReads = try .init(gpa, reads_options);
    errdefer reads.deinit(gpa);
    const disks = try gpa.alloc(?Disk, options.versions);
    @memset(disks, null);
    const wake_fd: i32 = @intCast(sys.check(
        linux.eventfd(0, linux.EFD.NONBLOCK | linux.EFD.CLOEXEC),
    ) catch return error.SystemCallFailed);
    const epoll = Epoll.init() catch return error.SystemCallFailed;
    epoll.add(wake_fd, .read, Token.wake) catch return error.SystemCallFailed;
    epoll.add(reads.workers.endedFd(), .read, Token.disk_reads) catch return error.SystemCallFailed;
    return .{
        .server = server,
        .socket = socket,
        .reads = reads,
        .sealed = try gpa.alloc(u8, stream_sending.sealed_size),
        .epoll = epoll,
        .busy = .{ .fd = socket.fd, .token = Token.stream },
        .wake_fd = wake_fd,
        .loop_wake_fd = loop_wake_fd,
        .commands = try .init(gpa, commands_max),
        .events = try .init(gpa, events_max),
        .forwarded = try .init(gpa, forwarded_max),
        .disks = disks,
        .cache = try .init(gpa, options.cache_nodes),
        .units = try .init(gpa, options.cache_units),
    };
}

/// The shard must not move until `stop`.
pub fn start(shard: *StreamShard) std.Thread.SpawnError!void {
    try shard.reads.workers.start();
    shard.thread = try std.Thread.spawn(.{ .stack_size = 1 << 20 }, run, .{shard});
}

/// Called by the packet loop: the shard finishes its turn and starts no other.
pub fn stop(shard: *StreamShard) void {
    shard.ends.store(true, .release);
    wake(shard.wake_fd);
    if (shard.thread) |thread| thread.join();
    shard.thread = null;
}

pub fn wake(wake_fd: i32) void {
    const one: u64 = 1;
    _ = linux.write(wake_fd, std.mem.asBytes(&one), 8);
}

fn run(shard: *StreamShard) void {
    shard.serve() catch {
        shard.has_failed.store(true, .release);
        wake(shard.loop_wake_fd);
    };
    shard.publish(sys.monotonicUs());
}

fn serve(shard: *StreamShard) sys.Error!void {
    while (!shard.ends.load(.acquire)) {
        var buffer: [4]u64 = undefined;
        const tokens = try shard.epoll.waitBeside(&shard.busy, &buffer, shard.timeoutMs());
        for (tokens) |token| switch (token) {
            Token.wake => {
                var count: u64 = undefined;
                _ = linux.read(shard.wake_fd, @ptrCast(&count), 8);
            },
            Token.stream => shard.receive(),
            Token.disk_reads => shard.reads.takeEnded(),
            else => unreachable,
        };
        shard.takeCommands();
        shard.reads.serve(shard, shard.socket);
        shard.busy.interest = if (shard.reads.awaits_socket) .read_and_write else .read;
        shard.notify(sys.monotonicUs());
    }
}

fn timeoutMs(shard: *const StreamShard) i32 {
    if (shard.reads.hasWork()) return 0;
    if (shard.must_wake) return wake_interval_us / std.time.us_per_ms;
    return if (shard.has_unpublished) publish_interval_us / std.time.us_per_ms else -1;
}

fn notify(shard: *StreamShard, now_us: u64) void {
    if (shard.must_wake and (now_us -| shard.woke_at_us >= wake_interval_us or
        shard.events.count() > events_max / 2))
    {
        shard.must_wake = false;
        shard.woke_at_us = now_us;
        wake(shard.loop_wake_fd);
    }
    if (shard.has_unpublished and now_us -| shard.published_at_us >= publish_interval_us)
        shard.publish(now_us);
}

fn publish(shard: *StreamShard, now_us: u64) void {
    shard.has_unpublished = false;
    shard.published_at_us = now_us;
    shard.figures.cold = shard.reads.figures.cold;
    shard.figures.cold_us = shard.reads.figures.cold_us;
    shard.figures.unanswered = shard.reads.unanswered();
    shard.figures.sessions = shard.server.session_count;
    shard.figures.ignored = shard.server.ignored.values;
    shard.figures.publish(&shard.published);
}

fn receive(shard: *StreamShard) void {
    const count = shard.socket.receive();
    // The command for a session is written before its device is welcomed, and so before the
    // device's first request.
    shard.takeCommands();
    shard.has_unpublished = true;
    for (0..count) |index| {
        const datagram = shard.socket.datagram(index);
        shard.handle(&datagram, sys.monotonicUs());
    }
}

fn handle(shard: *StreamShard, datagram: *const UdpSocket.Datagram, now_us: u64) void {
    if (!StreamServer.isPlainRead(datagram.bytes) or !shard.server.hasSessionAt(datagram.from))
        return shard.forward(datagram);
    switch (shard.server.receive(now_us, datagram.from, datagram.bytes, &shard.reply)) {
        .ignored => {},
        .reply => |packet| shard.socket.send(datagram.from, packet),
        .read => |*read| shard.takeRead(
            read,
            .{ .size = datagram.bytes.len, .at_us = datagram.at_us },
        ),
        // The cases above are all that a READ can become.
        .taken, .admit, .probe, .used, .write, .control, .ready, .report => unreachable,
        .present, .lost, .fetched, .account, .machine, .network => unreachable,
    }
}

fn takeRead(shard: *StreamShard, read: *const ReadRequest, arrival: Arrival) void {
    if (shard.reads.isWaiting(read)) return shard.onUnanswered(read, arrival);
    shard.emit(read, arrival, .came);
    shard.reads.take(shard, shard.socket, read, arrival);
}

fn forward(shard: *StreamShard, datagram: *const UdpSocket.Datagram) void {
    const slot = shard.forwarded.reserve() orelse {
        shard.figures.forwarded_lost += 1;
        return;
    };
    slot.from = datagram.from;
    slot.at_us = datagram.at_us;
    slot.size = @intCast(datagram.bytes.len);
    @memcpy(slot.bytes[0..datagram.bytes.len], datagram.bytes);
    shard.forwarded.commit();
    shard.figures.forwarded += 1;
    // Its device waits.
    shard.must_wake = true;
    shard.woke_at_us = 0;
}

fn emit(shard: *StreamShard, read: *const ReadRequest, arrival: Arrival, what: @FieldType(
    shard_messages.ReadEvent,
    "what",
)) void {
    const slot = shard.events.reserve() orelse {
        shard.figures.events_lost += 1;
        return;
    };
    slot.* = .{ .read = read.*, .arrival = arrival, .what = what };
    slot.read.ranges = .{};
    shard.events.commit();
    shard.must_wake = true;
}

fn takeCommands(shard: *StreamShard) void {
    while (shard.commands.peek()) |command| : (shard.commands.release()) {
        shard.has_unpublished = true;
        switch (command.*) {
            .drop => |session_id| {
                if (shard.server.findById(session_id)) |session| shard.server.drop(session);
                shard.closeUnused();
            },
            .adopt => |*adopted| if (shard.keep(adopted.session.version_id, &adopted.disk)) {
                shard.server.copySession(&adopted.session);
                shard.closeUnused();
            },
        }
    }
}

/// Returns false if there is no slot for the disk; requests for it go to the packet loop.
fn keep(shard: *StreamShard, version_id: base.Uuid, disk: *VersionDisk) bool {
    if (shard.diskOf(version_id) != null) {
        disk.close();
        return true;
    }
    for (shard.disks) |*slot| {
        if (slot.* != null) continue;
        slot.* = .{ .version_id = version_id, .disk = disk.* };
        shard.readBy(&slot.*.?.disk);
        return true;
    }
    disk.close();
    return false;
}

/// Gives the disk this thread's own nodes and files.
fn readBy(shard: *StreamShard, disk: *VersionDisk) void {
    const version = switch (disk.*) {
        .file => return,
        .version => |*version| version,
    };
    if (shard.files == null) shard.files = .{
        .data = .init(version.store.files, .extents),
        .nodes = .init(version.store.files, .nodes),
    };
    const files = &shard.files.?;
    version.reader.reading = .{
        .data = &files.data,
        .nodes = &files.nodes,
        .cache = &shard.cache,
        .units = &shard.units,
    };
}

fn closeUnused(shard: *StreamShard) void {
    for (shard.disks) |*slot| {
        const disk = if (slot.*) |*disk| disk else continue;
        for (shard.server.sessions) |*session| {
            if (session.id != 0 and session.version_id.eql(disk.version_id)) break;
        } else {
            disk.disk.close();
            slot.* = null;
        }
    }
}

// The functions that `StreamReads` calls on its port.

pub fn diskOf(shard: *StreamShard, version_id: base.Uuid) ?*VersionDisk {
    for (shard.disks) |*slot| {
        const disk = if (slot.*) |*disk| disk else continue;
        if (disk.version_id.eql(version_id)) return &disk.disk;
    }
    return null;
}

pub fn layerOf(_: *StreamShard, _: base.Uuid) ?*agent.write_caches.Layer {
    return null;
}

pub fn beginLayerRead(_: *StreamShard, _: *agent.write_caches.Layer) void {
    unreachable;
}

pub fn endLayerRead(_: *StreamShard, _: *agent.write_caches.Layer) void {
    unreachable;
}

pub fn hasSession(shard: *StreamShard, session_id: u64) bool {
    return shard.server.findById(session_id) != null;
}

pub fn sendRead(
    shard: *StreamShard,
    socket: *UdpSocket,
    read: *const ReadRequest,
    bytes: []const u8,
    sent: u16,
) stream_sending.Sent {
    return stream_sending.sendRead(&shard.server, shard.sealed, socket, read, .{
        .bytes = bytes,
        .sent = sent,
    });
}

pub fn onSending(shard: *StreamShard, read: *const ReadRequest, arrival: Arrival) void {
    shard.emit(read, arrival, .{ .sending = sys.monotonicUs() });
}

pub fn onAnswered(
    shard: *StreamShard,
    read: *const ReadRequest,
    arrival: Arrival,
    _: u64,
    measured: core.boot.ReadTimes.ReadSample,
) void {
    shard.figures.sent_bytes += read.bytes_out;
    shard.figures.reads += 1;
    shard.has_unpublished = true;
    shard.emit(read, arrival, .{ .answered = measured });
}

pub fn onUnanswered(shard: *StreamShard, read: *const ReadRequest, arrival: Arrival) void {
    shard.emit(read, arrival, .unanswered);
}

pub fn refuseRead(
    shard: *StreamShard,
    socket: *UdpSocket,
    read: *const ReadRequest,
    why: StreamReads.Error,
    at_us: u64,
) void {
    assert(why == error.StoreError);
    const session = shard.server.findById(read.session_id) orelse return;
    shard.emit(read, .{ .size = 0, .at_us = at_us }, .{ .store_error = at_us });
    const packet = shard.server.readError(read, .store_error, &shard.reply) orelse return;
    socket.send(session.from, packet);
}

test "events beyond the ring's capacity are counted, the others keep their order, and later events get through again" {
    const testing = std.testing;
    var shard: StreamShard = undefined;
    shard.events = try .init(testing.allocator, 2);
    defer shard.events.deinit(testing.allocator);
    shard.figures = .{};
    shard.must_wake = false;
    var read: ReadRequest = undefined;
    for (0..3) |number| {
        read.offset = number;
        shard.emit(&read, .{ .size = 0, .at_us = 0 }, .came);
    }
    try testing.expectEqual(1, shard.figures.events_lost);
    try testing.expect(shard.must_wake);
    try testing.expectEqual(0, shard.events.peek().?.read.offset);
    shard.events.release();
    read.offset = 3;
    shard.emit(&read, .{ .size = 0, .at_us = 0 }, .came);
    try testing.expectEqual(1, shard.figures.events_lost);
    for ([_]u64{ 1, 3 }) |offset| {
        try testing.expectEqual(offset, shard.events.peek().?.read.offset);
        shard.events.release();
    }
    try testing.expectEqual(null, shard.events.peek());
}
