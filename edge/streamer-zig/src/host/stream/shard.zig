//! One lane of the stream: a thread with a socket of the stream's port, that serves the READs of the sessions it was given, from memory by
//! itself and from disks by threads of its own. It shares nothing with other lanes; with the packet loop, which opens the sessions and keeps
//! their boots, it shares three bounded queues and each session's packet counter. It allocates nothing after its start, and never waits for
//! the packet loop (docs/decisions/0022-stream-lanes.md).

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store = @import("store");
const read_event = @import("read_event.zig");
const stream_reads = @import("reads.zig");
const stream_sending = @import("sending.zig");
const sys = @import("../sys.zig");
const udp_socket = @import("../net/udp_socket.zig");
const write_layers = @import("write_layers.zig");
const Arrival = @import("read_queue.zig").Arrival;
const Epoll = @import("../net/epoll.zig").Epoll;
const SpscRing = @import("spsc_ring.zig").SpscRing;
const VersionDisk = @import("version_disk.zig").VersionDisk;
const assert = std.debug.assert;
const linux = std.os.linux;

const ReadRequest = core.stream.Server.ReadRequest;
const StreamReads = stream_reads.StreamReads;
const StreamServer = core.stream.Server;
const UdpSocket = udp_socket.UdpSocket;

pub const StreamLane = struct {
    server: StreamServer,
    socket: *UdpSocket,
    reads: StreamReads,
    sealed: []u8,
    reply: StreamServer.ReplyBuffer = undefined,
    epoll: Epoll,
    busy: Epoll.Busy,
    /// The packet loop has written mail, or wants the lane to end.
    wake_fd: i32,
    /// Of the packet loop.
    loop_wake_fd: i32,
    mail: SpscRing(read_event.Mail),
    notes: SpscRing(read_event.Note),
    passed: SpscRing(read_event.Passed),
    ends: std.atomic.Value(bool) = .init(false),
    /// The system refused what it needs: the edge ends.
    has_failed: std.atomic.Value(bool) = .init(false),
    /// A lane keeps no writes.
    layers: ?*write_layers.WriteLayers = null,
    disks: []?Disk,
    cache: store.node_cache.NodeCache,
    /// Of the store that the first version lies in: an edge has one.
    files: ?Files = null,
    figures: read_event.Figures = .{},
    /// What others may read.
    published: read_event.Figures = .{},
    published_at_us: u64 = 0,
    has_unpublished: bool = true,
    /// Notes were given that the packet loop was not woken for.
    has_news: bool = false,
    woke_at_us: u64 = 0,
    thread: ?std.Thread = null,

    const Disk = struct { version_id: base.Uuid, disk: VersionDisk };
    const Files = struct { data: store.file_set.FileSet, nodes: store.file_set.FileSet };

    pub const Options = struct {
        versions: u32 = 64,
        /// 8 MiB: above 0.8 GiB of blocks that devices read.
        cache_nodes: u32 = 2048,
        reads: StreamReads.Options = .{ .workers = .{ .threads = 4, .tasks = 8 } },
    };

    /// As many letters as sessions may change at once in a hurry; what does not fit is written later.
    const mail_max = 64;
    /// Three for a READ: a third of a second at 1 GB/s in reads of 32 KiB; 7 MB.
    const notes_max = 1 << 15;
    const passed_max = 128;
    /// The packet loop is woken for notes this often at most.
    const news_interval_us = 2000;
    const publish_interval_us = 250_000;

    const Token = struct {
        const wake = 0;
        const stream = 1;
        const disk_reads = 2;
    };

    pub const InitError = StreamReads.InitError;

    /// `server` has as many places as the packet loop's; the lane owns it, and not its socket.
    pub fn init(gpa: std.mem.Allocator, server: StreamServer, socket: *UdpSocket, loop_wake_fd: i32, options: Options) InitError!StreamLane {
        var reads_options = options.reads;
        reads_options.queue.flows = @intCast(server.sessions.len);
        var reads: StreamReads = try .init(gpa, reads_options);
        errdefer reads.deinit(gpa);
        const disks = try gpa.alloc(?Disk, options.versions);
        @memset(disks, null);
        const wake_fd: i32 = @intCast(sys.check(linux.eventfd(0, linux.EFD.NONBLOCK | linux.EFD.CLOEXEC)) catch return error.SystemCallFailed);
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
            .mail = try .init(gpa, mail_max),
            .notes = try .init(gpa, notes_max),
            .passed = try .init(gpa, passed_max),
            .disks = disks,
            .cache = try .init(gpa, options.cache_nodes),
        };
    }

    /// The lane stays where it is until `stop`.
    pub fn start(lane: *StreamLane) std.Thread.SpawnError!void {
        try lane.reads.workers.start();
        lane.thread = try std.Thread.spawn(.{ .stack_size = 1 << 20 }, run, .{lane});
    }

    /// By the packet loop: the lane's turn ends, and no other begins.
    pub fn stop(lane: *StreamLane) void {
        lane.ends.store(true, .release);
        wake(lane.wake_fd);
        if (lane.thread) |thread| thread.join();
        lane.thread = null;
    }

    pub fn wake(wake_fd: i32) void {
        const one: u64 = 1;
        _ = linux.write(wake_fd, std.mem.asBytes(&one), 8);
    }

    fn run(lane: *StreamLane) void {
        lane.serve() catch {
            lane.has_failed.store(true, .release);
            wake(lane.loop_wake_fd);
        };
        lane.publish(sys.monotonicUs());
    }

    fn serve(lane: *StreamLane) sys.Error!void {
        while (!lane.ends.load(.acquire)) {
            var buffer: [4]u64 = undefined;
            const tokens = try lane.epoll.waitBeside(&lane.busy, &buffer, lane.timeoutMs());
            for (tokens) |token| switch (token) {
                Token.wake => {
                    var count: u64 = undefined;
                    _ = linux.read(lane.wake_fd, @ptrCast(&count), 8);
                },
                Token.stream => lane.receive(),
                Token.disk_reads => lane.reads.takeEnded(),
                else => unreachable,
            };
            lane.takeMail();
            lane.reads.serve(lane, lane.socket);
            lane.busy.interest = if (lane.reads.awaits_room) .read_and_write else .read;
            lane.tell(sys.monotonicUs());
        }
    }

    fn timeoutMs(lane: *const StreamLane) i32 {
        if (lane.reads.hasWork()) return 0;
        if (lane.has_news) return news_interval_us / std.time.us_per_ms;
        return if (lane.has_unpublished) publish_interval_us / std.time.us_per_ms else -1;
    }

    fn tell(lane: *StreamLane, now_us: u64) void {
        if (lane.has_news and (now_us -| lane.woke_at_us >= news_interval_us or lane.notes.count() > notes_max / 2)) {
            lane.has_news = false;
            lane.woke_at_us = now_us;
            wake(lane.loop_wake_fd);
        }
        if (lane.has_unpublished and now_us -| lane.published_at_us >= publish_interval_us) lane.publish(now_us);
    }

    fn publish(lane: *StreamLane, now_us: u64) void {
        lane.has_unpublished = false;
        lane.published_at_us = now_us;
        lane.figures.cold = lane.reads.figures.cold;
        lane.figures.unanswered = lane.reads.unanswered();
        lane.figures.sessions = lane.server.session_count;
        lane.figures.ignored = lane.server.ignored.values;
        lane.figures.publish(&lane.published);
    }

    fn receive(lane: *StreamLane) void {
        const count = lane.socket.receive();
        // A session's letter is written before its device is welcomed, so before it asks for anything.
        lane.takeMail();
        lane.has_unpublished = true;
        for (0..count) |index| {
            const datagram = lane.socket.datagram(index);
            lane.handle(&datagram, sys.monotonicUs());
        }
    }

    fn handle(lane: *StreamLane, datagram: *const udp_socket.Datagram, now_us: u64) void {
        if (!StreamServer.isPlainRead(datagram.bytes) or !lane.server.hasSessionAt(datagram.from)) return lane.pass(datagram);
        switch (lane.server.receive(now_us, datagram.from, datagram.bytes, &lane.reply)) {
            .ignored => {},
            .reply => |packet| lane.socket.send(datagram.from, packet),
            .read => |*read| lane.takeRead(read, .{ .size = datagram.bytes.len, .at_us = datagram.at_us }),
            // What READ can become is above.
            .taken, .admit, .probe, .used, .write, .control, .ready, .report => unreachable,
        }
    }

    fn takeRead(lane: *StreamLane, read: *const ReadRequest, arrival: Arrival) void {
        if (lane.reads.isWaiting(read)) return lane.noteUnanswered(read, arrival);
        lane.note(read, arrival, .came);
        lane.reads.take(lane, lane.socket, read, arrival);
    }

    fn pass(lane: *StreamLane, datagram: *const udp_socket.Datagram) void {
        const place = lane.passed.room() orelse {
            lane.figures.passed_lost += 1;
            return;
        };
        place.from = datagram.from;
        place.at_us = datagram.at_us;
        place.size = @intCast(datagram.bytes.len);
        @memcpy(place.bytes[0..datagram.bytes.len], datagram.bytes);
        lane.passed.give();
        lane.figures.passed += 1;
        // Its device waits.
        lane.has_news = true;
        lane.woke_at_us = 0;
    }

    fn note(lane: *StreamLane, read: *const ReadRequest, arrival: Arrival, what: @FieldType(read_event.Note, "what")) void {
        const place = lane.notes.room() orelse {
            lane.figures.notes_lost += 1;
            return;
        };
        place.* = .{ .read = read.*, .arrival = arrival, .what = what };
        place.read.ranges = .{};
        lane.notes.give();
        lane.has_news = true;
    }

    fn takeMail(lane: *StreamLane) void {
        while (lane.mail.next()) |mail| : (lane.mail.done()) {
            lane.has_unpublished = true;
            switch (mail.*) {
                .drop => |session_id| {
                    if (lane.server.findById(session_id)) |session| lane.server.drop(session);
                    lane.closeUnused();
                },
                .adopt => |*adopted| if (lane.keep(adopted.session.version_id, &adopted.disk)) {
                    lane.server.adopt(&adopted.session);
                    lane.closeUnused();
                },
            }
        }
    }

    /// False: there is no place for the disk; what is asked of it goes to the packet loop.
    fn keep(lane: *StreamLane, version_id: base.Uuid, disk: *VersionDisk) bool {
        if (lane.diskOf(version_id) != null) {
            disk.close();
            return true;
        }
        for (lane.disks) |*place| {
            if (place.* != null) continue;
            place.* = .{ .version_id = version_id, .disk = disk.* };
            lane.readBy(&place.*.?.disk);
            return true;
        }
        disk.close();
        return false;
    }

    /// Its nodes and files are this thread's own.
    fn readBy(lane: *StreamLane, disk: *VersionDisk) void {
        const version = switch (disk.*) {
            .file => return,
            .version => |*version| version,
        };
        if (lane.files == null) lane.files = .{ .data = .init(version.store.files, .extents), .nodes = .init(version.store.files, .nodes) };
        const files = &lane.files.?;
        version.reader.reading = .{ .data = &files.data, .nodes = &files.nodes, .cache = &lane.cache };
    }

    fn closeUnused(lane: *StreamLane) void {
        for (lane.disks) |*place| {
            const disk = if (place.*) |*disk| disk else continue;
            for (lane.server.sessions) |*session| {
                if (session.id != 0 and session.version_id.eql(disk.version_id)) break;
            } else {
                disk.disk.close();
                place.* = null;
            }
        }
    }

    // What `StreamReads` asks of its port.

    pub fn diskOf(lane: *StreamLane, version_id: base.Uuid) ?*VersionDisk {
        for (lane.disks) |*place| {
            const disk = if (place.*) |*disk| disk else continue;
            if (disk.version_id.eql(version_id)) return &disk.disk;
        }
        return null;
    }

    pub fn layerOf(_: *StreamLane, _: base.Uuid) ?*write_layers.Layer {
        return null;
    }

    pub fn sendRead(lane: *StreamLane, socket: *UdpSocket, read: *const ReadRequest, bytes: []const u8, sent: u16) stream_sending.Sent {
        return stream_sending.sendRead(&lane.server, lane.sealed, socket, read, .{ .bytes = bytes, .sent = sent });
    }

    pub fn noteSending(lane: *StreamLane, read: *const ReadRequest, arrival: Arrival) void {
        lane.note(read, arrival, .{ .sending = sys.monotonicUs() });
    }

    pub fn noteAnswered(lane: *StreamLane, read: *const ReadRequest, arrival: Arrival, _: u64, measured: core.boot.ReadTimes.Measured) void {
        lane.figures.sent_bytes += read.bytes_out;
        lane.figures.reads += 1;
        lane.has_unpublished = true;
        lane.note(read, arrival, .{ .answered = measured });
    }

    pub fn noteUnanswered(lane: *StreamLane, read: *const ReadRequest, arrival: Arrival) void {
        lane.note(read, arrival, .unanswered);
    }

    pub fn refuseRead(lane: *StreamLane, socket: *UdpSocket, read: *const ReadRequest, why: stream_reads.Error, at_us: u64) void {
        assert(why == error.StoreError);
        const session = lane.server.findById(read.session_id) orelse return;
        lane.note(read, .{ .size = 0, .at_us = at_us }, .{ .store_error = at_us });
        const packet = lane.server.readError(read, .store_error, &lane.reply) orelse return;
        socket.send(session.from, packet);
    }
};

test "news that the packet loop has no room for is counted, what it has keeps its order, and later news are heard again" {
    const testing = std.testing;
    var lane: StreamLane = undefined;
    lane.notes = try .init(testing.allocator, 2);
    defer lane.notes.deinit(testing.allocator);
    lane.figures = .{};
    lane.has_news = false;
    var read: ReadRequest = undefined;
    for (0..3) |number| {
        read.offset = number;
        lane.note(&read, .{ .size = 0, .at_us = 0 }, .came);
    }
    try testing.expectEqual(1, lane.figures.notes_lost);
    try testing.expect(lane.has_news);
    try testing.expectEqual(0, lane.notes.next().?.read.offset);
    lane.notes.done();
    read.offset = 3;
    lane.note(&read, .{ .size = 0, .at_us = 0 }, .came);
    try testing.expectEqual(1, lane.figures.notes_lost);
    for ([_]u64{ 1, 3 }) |offset| {
        try testing.expectEqual(offset, lane.notes.next().?.read.offset);
        lane.notes.done();
    }
    try testing.expectEqual(null, lane.notes.next());
}
