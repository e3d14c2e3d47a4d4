//! Tests server.zig over real sockets on loopback, with one thread for both sides.

const std = @import("std");
const base = @import("base");
const wire = @import("wire");
const StampWitness = @import("../net/stamp_witness.zig");
const sys = @import("../sys.zig");
const HeldDisk = @import("../stream/version_disk.zig").HeldDisk;
const PageWarmer = @import("../files/page_warmer.zig");
const sockets = @import("../net/sockets.zig");
const http_response = @import("response.zig");
const HttpServer = @import("server.zig");
const tcp_delivery = @import("tcp_delivery.zig");
const Epoll = @import("../net/epoll.zig");
const Instruction = @import("../net/packet_filter.zig").Instruction;

const testing = std.testing;
const linux = std.os.linux;

const file_size = 8 << 20;
/// More than a narrow client's receive buffer, less than a send buffer.
const kernel_size = 128 << 10;

/// Serves `/small` from memory, `/file` from disk, and `/text` written on demand.
const Fixture = struct {
    tmp: testing.TmpDir,
    file_fd: i32,
    epoll: Epoll,
    listener: i32,
    port: u16,
    server: HttpServer,
    now_us: u64 = 1_000_000,
    /// When the client had `/kernel`.
    finished_at_us: ?u64 = null,
    /// Time passes with each turn.
    ticks: bool = false,
    kernel_answers: u32 = 0,
    kernel_size: u64 = kernel_size,
    /// The last progress that was reported of `/kernel`.
    told_at_us: u64 = 0,
    tellings: u32 = 0,
    /// When the latest request for it arrived.
    begun_at_us: u64 = 0,
    /// Records that `/promise` waits for, and that are written.
    given: u64 = 0,
    written: u64 = 0,
    /// The part of `/disk` that is in memory and checked, and reads that waited for it.
    disk_read_to: u64 = 0,
    disk_waits: u32 = 0,
    is_version_open: bool = false,

    const token_base = 16;

    fn init(connections_max: u16) !*Fixture {
        const fixture = try testing.allocator.create(Fixture);
        var tmp = testing.tmpDir(.{});
        const content = try testing.allocator.alloc(u8, file_size);
        defer testing.allocator.free(content);
        for (content, 0..) |*byte, index| byte.* = byteAt(index);
        try tmp.dir.writeFile(testing.io, .{ .sub_path = "file", .data = content });
        const file = try tmp.dir.openFile(testing.io, "file", .{});
        const listener = try sockets.openListener(.{ .ip = .init(127, 0, 0, 1), .port = 0 });
        var address: linux.sockaddr.in = undefined;
        var size: linux.socklen_t = @sizeOf(linux.sockaddr.in);
        _ = try sys.check(linux.getsockname(listener, @ptrCast(&address), &size));
        const epoll = try Epoll.init();
        fixture.* = .{
            .tmp = tmp,
            .file_fd = file.handle,
            .epoll = epoll,
            .listener = listener,
            .port = std.mem.bigToNative(u16, address.port),
            .server = try .init(testing.allocator, listener, epoll, token_base, .{
                .context = fixture,
                .respond = respond,
                .progress = progress,
                .awaitRecords = awaitRecords,
                .isWritten = isWritten,
                .read = readDisk,
                .hold = holdDisk,
                .markRead = markRead,
            }, connections_max),
        };
        return fixture;
    }

    fn deinit(fixture: *Fixture) void {
        fixture.server.deinit(testing.allocator);
        fixture.epoll.deinit();
        sys.close(fixture.listener);
        sys.close(fixture.file_fd);
        fixture.tmp.cleanup();
        testing.allocator.destroy(fixture);
    }

    fn respond(
        context: *anyopaque,
        _: base.Ip4,
        request: *const wire.http_request.Request,
        text: *[http_response.text_size_max]u8,
    ) http_response.Response {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        if (std.mem.eql(u8, request.target, "/small"))
            return .{ .status = 200, .body = .{ .memory = "0123456789" } };
        if (std.mem.eql(u8, request.target, "/file"))
            return .{
                .status = 200,
                .body = .{ .file = .{ .fd = fixture.file_fd, .size = file_size } },
            };
        if (std.mem.eql(u8, request.target, "/kernel")) return .{
            .status = 200,
            .body = .{ .file = .{ .fd = fixture.file_fd, .size = fixture.kernel_size } },
            .tag = .{ .boot = .{ .index = 0, .generation = 0 }, .what = .kernel },
        };
        if (std.mem.eql(u8, request.target, "/text")) {
            const written = std.mem.print(text, "hello", .{}) catch unreachable;
            return .{ .status = 200, .body = .{ .text = written.len } };
        }
        if (std.mem.eql(u8, request.target, "/disk"))
            return .{
                .status = 200,
                .body = .{ .disk = .{ .version_id = .zero, .size = file_size } },
            };
        if (std.mem.eql(u8, request.target, "/promise")) {
            fixture.given += 1;
            return .{
                .status = 200,
                .body = .{ .memory = "promised" },
                .after_journal = true,
            };
        }
        if (std.mem.eql(u8, request.target, "/version"))
            return if (fixture.is_version_open)
                .{ .status = 200, .body = .{ .memory = "version" } }
            else
                .later;
        if (std.mem.eql(u8, request.target, "/word"))
            return .{ .status = if (std.mem.eql(u8, request.body, "hello")) 204 else 409 };
        return .{ .status = 404 };
    }

    fn awaitRecords(context: *anyopaque) ?u64 {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        return if (fixture.written < fixture.given) fixture.given else null;
    }

    fn isWritten(context: *anyopaque, number: u64) bool {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        return fixture.written >= number;
    }

    /// A disk of the store: its blocks are checked once, by a thread or by a read that waits.
    fn readDisk(
        context: *anyopaque,
        _: base.Uuid,
        buffer: []u8,
        offset: u64,
        how: HttpServer.DiskRead,
    ) HttpServer.DiskRead.Result {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        if (how == .now and offset + buffer.len > fixture.disk_read_to) return .waits;
        if (how == .wait) fixture.disk_waits += 1;
        const size = sys.readAt(fixture.file_fd, buffer, offset) catch return .failed;
        return if (size == buffer.len) .filled else .failed;
    }

    fn holdDisk(context: *anyopaque, _: base.Uuid) ?HeldDisk {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        const rc = linux.fcntl(fixture.file_fd, linux.F.DUPFD_CLOEXEC, 0);
        const fd: i32 = @intCast(sys.check(rc) catch return null);
        return .{ .file = .{ .fd = fd, .size = file_size, .modified_ns = 0 } };
    }

    fn markRead(context: *anyopaque, _: base.Uuid, offset: u64, size: u64) void {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        fixture.disk_read_to = offset + size;
    }

    fn progress(context: *anyopaque, tag: http_response.Tag, step: HttpServer.Progress) void {
        const fixture: *Fixture = @ptrCast(@alignCast(context));
        if (tag.what != .kernel) return;
        if (step.begins) fixture.begun_at_us = step.at_us;
        fixture.told_at_us = step.at_us;
        fixture.tellings += 1;
        if (!step.finished) return;
        fixture.finished_at_us = step.at_us;
        fixture.kernel_answers += 1;
    }

    /// Connects a client whose receive buffer holds a few packets.
    fn connectNarrow(fixture: *const Fixture) !i32 {
        return fixture.connectWith(.{ .room = 4096 });
    }

    /// Runs the loop until the kernel has everything of the first connection.
    fn turnUntilDraining(fixture: *Fixture) !void {
        for (0..1000) |_| {
            if (fixture.server.connections.all[0].state == .draining) return;
            try fixture.turn();
        }
        return error.NeverSentWhole;
    }

    fn connect(fixture: *const Fixture) !i32 {
        return fixture.connectWith(.{});
    }

    fn connectWith(
        fixture: *const Fixture,
        limits: struct { room: ?i32 = null, segment_size_max: ?i32 = null },
    ) !i32 {
        const fd: i32 = @intCast(
            try sys.check(linux.socket(linux.AF.INET, linux.SOCK.STREAM | linux.SOCK.CLOEXEC, 0)),
        );
        if (limits.room) |size| try sockets.setInt(fd, linux.SOL.SOCKET, linux.SO.RCVBUF, size);
        if (limits.segment_size_max) |size|
            try sockets.setInt(fd, linux.IPPROTO.TCP, linux.TCP.MAXSEG, size);
        const to = sockets.toSockaddr(.{ .ip = .init(127, 0, 0, 1), .port = fixture.port });
        _ = try sys.check(linux.connect(fd, @ptrCast(&to), @sizeOf(linux.sockaddr.in)));
        return fd;
    }

    /// Lets the server do what it can at once.
    fn turn(fixture: *Fixture) !void {
        fixture.server.accept(fixture.now_us);
        if (fixture.ticks) fixture.server.tick(fixture.now_us);
        var buffer: [16]u64 = undefined;
        for (try fixture.epoll.wait(&buffer, 10)) |token|
            fixture.server.handle(token, fixture.now_us);
        fixture.server.endReads();
    }

    /// Sends a request and reads until `size` bytes have arrived or the server has closed the
    /// connection.
    fn exchange(fixture: *Fixture, fd: i32, request: []const u8, answer: []u8) ![]u8 {
        try sys.writeAll(fd, request);
        var filled: usize = 0;
        for (0..10_000) |_| {
            if (filled == answer.len) break;
            try fixture.turn();
            const rest = answer[filled..];
            const count = sys.check(
                linux.recvfrom(fd, rest.ptr, rest.len, linux.MSG.DONTWAIT, null, null),
            ) catch |err| switch (err) {
                error.WouldBlock => continue,
                else => return err,
            };
            if (count == 0) break;
            filled += count;
        }
        return answer[0..filled];
    }

    /// Runs a client of `/kernel` that the server does not hear after its request, until it resets
    /// the connection with everything read; returns when the request was sent.
    fn loadWithoutAcknowledging(fixture: *Fixture, size: u64) !u64 {
        fixture.kernel_size = size;
        const fd = try fixture.connectWith(.{ .segment_size_max = 1460 });
        try sys.writeAll(fd, "GET /kernel HTTP/1.1\r\n\r\n");
        const asked_us = sys.monotonicUs();
        fixture.server.accept(fixture.now_us);
        try hearOnlyResets(fixture.server.connections.all[0].fd);
        try fixture.turnUntilDraining();
        for (0..5) |_| try fixture.turn();
        const buffer = try testing.allocator.alloc(u8, size + 1024);
        defer testing.allocator.free(buffer);
        const count = try sys.check(
            linux.recvfrom(fd, buffer.ptr, buffer.len, linux.MSG.DONTWAIT, null, null),
        );
        try testing.expectEqual(size, bodyOf(buffer[0..count]).len);
        try testing.expectEqual(0, fixture.kernel_answers);
        const tellings = fixture.tellings;
        try closeAtOnce(fd);
        try fixture.turn();
        try testing.expectEqual(tellings + 1, fixture.tellings);
        try testing.expectEqual(.free, fixture.server.connections.all[0].state);
        return asked_us;
    }

    fn isClosed(_: *const Fixture, fd: i32) bool {
        var byte: [1]u8 = undefined;
        const count = sys.check(
            linux.recvfrom(fd, &byte, 1, linux.MSG.DONTWAIT, null, null),
        ) catch |err|
            return err == error.SystemCallFailed;
        return count == 0;
    }
};

fn byteAt(index: usize) u8 {
    return @truncate(index *% 2_654_435_761 >> 7);
}

fn bodyOf(answer: []const u8) []const u8 {
    const end = std.mem.find(u8, answer, "\r\n\r\n") orelse return "";
    return answer[end + 4 ..];
}

test "two requests in one packet are answered in order on one connection" {
    const fixture = try Fixture.init(4);
    defer fixture.deinit();
    const fd = try fixture.connect();
    defer sys.close(fd);
    const requests = "GET /small HTTP/1.1\r\n\r\nGET /text HTTP/1.1\r\nConnection: close\r\n\r\n";
    var buffer: [2048]u8 = undefined;
    const answer = try fixture.exchange(fd, requests, &buffer);
    const first = std.mem.find(u8, answer, "0123456789").?;
    const second = std.mem.find(u8, answer, "hello").?;
    try testing.expect(first < second);
    try testing.expectEqual(2, std.mem.count(u8, answer, "HTTP/1.1 200 OK\r\n"));
}

test "ranges, HEAD and refusals follow RFC 9110" {
    const fixture = try Fixture.init(4);
    defer fixture.deinit();
    const cases = [_]struct {
        request: []const u8,
        status: []const u8,
        has: []const u8 = "",
        body: []const u8 = "",
    }{
        .{
            .request = "GET /small HTTP/1.0\r\nRange: bytes=2-4\r\n\r\n",
            .status = "206",
            .has = "content-range: bytes 2-4/10\r\n",
            .body = "234",
        },
        .{
            .request = "GET /small HTTP/1.0\r\nRange: bytes=-3\r\n\r\n",
            .status = "206",
            .body = "789",
        },
        .{
            .request = "GET /small HTTP/1.0\r\nRange: bytes=10-\r\n\r\n",
            .status = "416",
            .has = "content-range: bytes */10\r\n",
        },
        .{
            .request = "HEAD /file HTTP/1.0\r\n\r\n",
            .status = "200",
            .has = "content-length: 8388608\r\n",
        },
        .{
            .request = "GET /absent HTTP/1.0\r\n\r\n",
            .status = "404",
            .has = "content-length: 0\r\n",
        },
        .{
            .request = "PUT /small HTTP/1.1\r\n\r\n",
            .status = "405",
            .has = "allow: GET, HEAD, POST\r\n",
            .body = "Only GET, HEAD and POST are served here.\n",
        },
        .{
            .request = "POST /word HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            .status = "411",
            .has = "connection: close\r\n",
            .body = "A body needs a Content-Length; it is not taken in chunks.\n",
        },
        .{
            .request = "POST /word HTTP/1.1\r\nContent-Length: 257\r\n\r\n",
            .status = "413",
            .has = "connection: close\r\n",
            .body = "A body may have at most 256 bytes, and only that of POST.\n",
        },
        .{
            .request = "nonsense\r\n\r\n",
            .status = "400",
            .has = "connection: close\r\n",
            .body = "This is not an HTTP request.\n",
        },
    };
    for (cases) |case| {
        const fd = try fixture.connect();
        defer sys.close(fd);
        var buffer: [2048]u8 = undefined;
        const answer = try fixture.exchange(fd, case.request, &buffer);
        try testing.expectEqualStrings(case.status, answer["HTTP/1.1 ".len..][0..3]);
        try testing.expect(std.mem.find(u8, answer, case.has) != null);
        try testing.expectEqualStrings(case.body, bodyOf(answer));
    }
    try testing.expectEqual(1, fixture.server.ignored.get(.http_not_found));
    try testing.expectEqual(4, fixture.server.ignored.get(.http_bad_request));
}

test "a body that comes in pieces is accepted, and the connection continues" {
    const fixture = try Fixture.init(4);
    defer fixture.deinit();
    const fd = try fixture.connect();
    defer sys.close(fd);
    try sys.writeAll(fd, "POST /word HTTP/1.1\r\nContent-Length: 5\r\n\r\nhe");
    for (0..5) |_| try fixture.turn();
    var buffer: [2048]u8 = undefined;
    const rest =
        "lloPOST /word HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET /small HTTP/1.1\r\nConnection: close\r\n\r\n";
    const answer = try fixture.exchange(fd, rest, &buffer);
    try testing.expect(std.mem.startsWith(
        u8,
        answer,
        "HTTP/1.1 204 No Content\r\nconnection: keep-alive\r\n\r\nHTTP/1.1 409",
    ));
    try testing.expect(std.mem.endsWith(u8, answer, "\r\n\r\n0123456789"));
}

test "a file larger than every socket buffer arrives complete" {
    const fixture = try Fixture.init(4);
    defer fixture.deinit();
    const fd = try fixture.connect();
    defer sys.close(fd);
    const buffer = try testing.allocator.alloc(u8, file_size + 1024);
    defer testing.allocator.free(buffer);
    const body =
        bodyOf(try fixture.exchange(fd, "GET /file HTTP/1.1\r\nConnection: close\r\n\r\n", buffer));
    try testing.expectEqual(file_size, body.len);
    for (body, 0..) |byte, index| if (byte != byteAt(index)) return error.WrongByte;
}

test "a client that does not finish its head, or does not read, is disconnected" {
    const fixture = try Fixture.init(4);
    defer fixture.deinit();
    const silent = try fixture.connect();
    defer sys.close(silent);
    const stalled = try fixture.connect();
    defer sys.close(stalled);
    try sys.writeAll(silent, "GET /small HT");
    try sys.writeAll(stalled, "GET /file HTTP/1.1\r\n\r\n");
    for (0..20) |_| try fixture.turn();
    fixture.server.tick(fixture.now_us);
    try testing.expectEqual(0, fixture.server.ignored.get(.http_slow));
    fixture.now_us += HttpServer.stall_limit_us + 1;
    fixture.server.tick(fixture.now_us);
    try testing.expectEqual(2, fixture.server.ignored.get(.http_slow));
    try testing.expect(fixture.isClosed(silent));
    // The slots are free again.
    const next = try fixture.connect();
    defer sys.close(next);
    var buffer: [1024]u8 = undefined;
    const answer = try fixture.exchange(next, "GET /small HTTP/1.0\r\n\r\n", &buffer);
    try testing.expectEqualStrings("0123456789", bodyOf(answer));
}

test "a new connection replaces the one that has waited longest, not a busy one" {
    const fixture = try Fixture.init(3);
    defer fixture.deinit();
    const works = try fixture.connect();
    defer sys.close(works);
    try sys.writeAll(works, "GET /file HTTP/1.1\r\n\r\n");
    for (0..5) |_| try fixture.turn();
    var waiting: [2]i32 = undefined;
    for (&waiting) |*fd| {
        fixture.now_us += 1;
        fd.* = try fixture.connect();
        for (0..5) |_| try fixture.turn();
    }
    defer for (waiting) |fd| sys.close(fd);
    var buffer: [1024]u8 = undefined;
    const next = try fixture.connect();
    defer sys.close(next);
    const answer = try fixture.exchange(next, "GET /small HTTP/1.0\r\n\r\n", &buffer);
    try testing.expectEqualStrings("0123456789", bodyOf(answer));
    try testing.expect(fixture.isClosed(waiting[0]));
    try testing.expect(!fixture.isClosed(waiting[1]));
    try testing.expectEqual(.sending, fixture.server.connections.all[0].state);
    try testing.expectEqual(1, fixture.server.ignored.get(.http_busy));
}

test "an address is the same however it is written" {
    const fixture = try Fixture.init(1);
    defer fixture.deinit();
    for ([_][]const u8{
        "/sm%61ll",
        "http://127.0.0.1/small",
        "HTTP://edge:6980/%73mall",
    }) |target| {
        const fd = try fixture.connect();
        defer sys.close(fd);
        var request: [128]u8 = undefined;
        var buffer: [1024]u8 = undefined;
        const answer = try fixture.exchange(
            fd,
            try std.mem.print(&request, "GET {s} HTTP/1.0\r\n\r\n", .{target}),
            &buffer,
        );
        try testing.expectEqualStrings("0123456789", bodyOf(answer));
    }
    const fd = try fixture.connect();
    defer sys.close(fd);
    var buffer: [1024]u8 = undefined;
    const answer = try fixture.exchange(fd, "GET /%zz HTTP/1.0\r\n\r\n", &buffer);
    try testing.expect(std.mem.startsWith(u8, answer, "HTTP/1.1 400 "));
}

test "connections beyond the capacity are closed and counted" {
    const fixture = try Fixture.init(2);
    defer fixture.deinit();
    var fds: [3]i32 = undefined;
    for (fds[0..2]) |*fd| fd.* = try fixture.connect();
    defer for (fds) |fd| sys.close(fd);
    for (fds[0..2]) |fd| {
        // Both are busy: their clients do not read.
        try sys.writeAll(fd, "GET /file HTTP/1.1\r\n\r\n");
        for (0..5) |_| try fixture.turn();
    }
    fds[2] = try fixture.connect();
    for (0..5) |_| try fixture.turn();
    try testing.expectEqual(1, fixture.server.ignored.get(.http_busy));
    try testing.expect(fixture.isClosed(fds[2]));
    try testing.expect(!fixture.isClosed(fds[0]));
}

test "an answer that ends a phase is finished when its last byte is acknowledged, at that instant" {
    try expectFinishedWhenAcknowledged(.{ .stamps = true });
}

test "the same holds where the kernel stamps nothing" {
    try expectFinishedWhenAcknowledged(.{ .stamps = false });
}

fn expectFinishedWhenAcknowledged(kernel: struct { stamps: bool }) !void {
    const fixture = try Fixture.init(1);
    defer fixture.deinit();
    fixture.server.stamps = kernel.stamps;
    const fd = try fixture.connectNarrow();
    defer sys.close(fd);
    // The next request is here before the answer is acknowledged.
    try sys.writeAll(
        fd,
        "GET /kernel HTTP/1.1\r\n\r\nGET /kernel HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    try fixture.turnUntilDraining();
    fixture.server.tick(fixture.now_us);
    for (0..5) |_| try fixture.turn();
    try testing.expectEqual(null, fixture.finished_at_us);

    const before_us = sys.monotonicUs();
    const buffer = try testing.allocator.alloc(u8, 2 * (kernel_size + 1024));
    defer testing.allocator.free(buffer);
    fixture.ticks = !kernel.stamps;
    const answers = try fixture.exchange(fd, "", buffer);
    try testing.expectEqual(2, fixture.kernel_answers);
    try testing.expectEqual(2, std.mem.count(u8, answers, "HTTP/1.1 200 OK\r\n"));
    const body = answers[answers.len - kernel_size ..];
    for (body, 0..) |byte, index| if (byte != byteAt(index)) return error.WrongByte;
    // Without stamps the kernel counts in ms.
    try testing.expect(fixture.finished_at_us.? + 10_000 > before_us);
    try testing.expect(fixture.finished_at_us.? <= sys.monotonicUs());
    try testing.expect(fixture.isClosed(fd));
}

test "the instants are those of the packets, not of the turns that handle them" {
    var witness = try StampWitness.init(testing.allocator);
    defer witness.deinit(testing.allocator);
    const fixture = try Fixture.init(1);
    defer fixture.deinit();
    const fd = try fixture.connectNarrow();
    defer sys.close(fd);
    try sys.writeAll(fd, "GET /kernel HTTP/1.1\r\n\r\n");
    const arrived_us = sys.monotonicUs();
    try fixture.turnUntilDraining();
    try testing.expect(fixture.begun_at_us > 0);
    try testing.expect(fixture.begun_at_us <= arrived_us);
    const buffer = try testing.allocator.alloc(u8, kernel_size + 1024);
    defer testing.allocator.free(buffer);
    // The client alone, until the kernel knows that the client has everything.
    const server_fd = fixture.server.connections.all[0].fd;
    var filled: usize = 0;
    while (tcp_delivery.unacknowledged(server_fd).? > 0) {
        const rest = buffer[filled..];
        filled += try sys.check(linux.recvfrom(fd, rest.ptr, rest.len, 0, null, null));
    }
    const acknowledged_us = sys.monotonicUs();
    try fixture.turn();
    try testing.expect(fixture.finished_at_us.? <= acknowledged_us);
}

test "a client that resets before it has everything has not got the answer" {
    const fixture = try Fixture.init(1);
    defer fixture.deinit();
    const fd = try fixture.connectNarrow();
    try sys.writeAll(fd, "GET /kernel HTTP/1.1\r\n\r\n");
    try fixture.turnUntilDraining();
    try closeAtOnce(fd);
    try fixture.turn();
    try testing.expectEqual(.free, fixture.server.connections.all[0].state);
    try testing.expectEqual(null, fixture.finished_at_us);
}

/// Closes the connection with a reset.
fn closeAtOnce(fd: i32) !void {
    const at_once: extern struct { on: i32 = 1, seconds: i32 = 0 } = .{};
    _ = try sys.check(linux.setsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.LINGER,
        @ptrCast(&at_once),
        @sizeOf(@TypeOf(at_once)),
    ));
    sys.close(fd);
}

/// Drops every segment to this socket that is not a reset (socket(7), SO_ATTACH_FILTER).
fn hearOnlyResets(fd: i32) !void {
    const load_byte = 0x30;
    const jump_if_set = 0x45;
    const give = 0x06;
    const all = [_]Instruction{
        // The flags of the TCP header.
        .{ .code = load_byte, .jump_true = 0, .jump_false = 0, .k = 13 },
        .{ .code = jump_if_set, .jump_true = 0, .jump_false = 1, .k = 0x04 },
        .{ .code = give, .jump_true = 0, .jump_false = 0, .k = std.math.maxInt(u32) },
        .{ .code = give, .jump_true = 0, .jump_false = 0, .k = 0 },
    };
    const program: extern struct {
        count: u16 = all.len,
        instructions: [*]const Instruction = &all,
    } = .{};
    _ = try sys.check(linux.setsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.ATTACH_FILTER,
        @ptrCast(&program),
        @sizeOf(@TypeOf(program)),
    ));
}

/// The kernel counts in ticks, and a busy machine misses some: of this many looks, one is exact.
const looks_max = 20;

test "a client that resets before its last acknowledgement has the answer since the previous one" {
    for (0..looks_max) |_| {
        const fixture = try Fixture.init(1);
        defer fixture.deinit();
        const asked_us = try fixture.loadWithoutAcknowledging(2000);
        try testing.expectEqual(1, fixture.kernel_answers);
        const finished_us = fixture.finished_at_us.?;
        if (finished_us <= asked_us + sys.tickUs() and
            finished_us + 2 * sys.tickUs() >= fixture.begun_at_us) return;
    }
    return error.TestUnexpectedResult;
}

test "a client that owes more has not got it, and its last acknowledgement is reported" {
    for (0..looks_max) |_| {
        const fixture = try Fixture.init(1);
        defer fixture.deinit();
        const asked_us = try fixture.loadWithoutAcknowledging(8000);
        try testing.expectEqual(0, fixture.kernel_answers);
        if (fixture.told_at_us <= asked_us + sys.tickUs()) return;
    }
    return error.TestUnexpectedResult;
}

test "a client that stops acknowledging is disconnected" {
    const fixture = try Fixture.init(1);
    defer fixture.deinit();
    const fd = try fixture.connectNarrow();
    defer sys.close(fd);
    try sys.writeAll(fd, "GET /kernel HTTP/1.1\r\n\r\n");
    try fixture.turnUntilDraining();
    fixture.now_us += HttpServer.stall_limit_us + 1;
    fixture.server.tick(fixture.now_us);
    try testing.expectEqual(1, fixture.server.ignored.get(.http_slow));
    try testing.expectEqual(null, fixture.finished_at_us);
}

/// Nothing of a file is in memory.
fn isCold(_: i32, _: u64, _: usize) bool {
    return false;
}

test "what is not in memory is read by a thread, and others are answered meanwhile" {
    const fixture = try Fixture.init(4);
    defer fixture.deinit();
    var warmer: PageWarmer = try .init(.{ .isInMemory = isCold });
    fixture.server.warmer = &warmer;
    const gone = try fixture.connect();
    try sys.writeAll(gone, "GET /file HTTP/1.1\r\n\r\n");
    for (0..3) |_| try fixture.turn();
    const first = &fixture.server.connections.all[0];
    try testing.expect(first.awaits_disk and first.task.is_busy);
    const other = try fixture.connect();
    defer sys.close(other);
    var small: [1024]u8 = undefined;
    const answer = try fixture.exchange(other, "GET /small HTTP/1.0\r\n\r\n", &small);
    try testing.expectEqualStrings("0123456789", bodyOf(answer));
    // A client that resets its connection meanwhile frees its slot, and the next one waits for the
    // thread that reads for it.
    try closeAtOnce(gone);
    for (0..3) |_| try fixture.turn();
    try testing.expectEqual(.free, first.state);
    try testing.expect(first.task.is_busy);
    const fd = try fixture.connect();
    defer sys.close(fd);
    try sys.writeAll(fd, "GET /file HTTP/1.1\r\nRange: bytes=4194304-\r\n\r\n");
    for (0..3) |_| try fixture.turn();
    try testing.expect(first.awaits_disk);
    try warmer.run();
    defer warmer.deinit();
    const whole = try testing.allocator.alloc(u8, file_size);
    defer testing.allocator.free(whole);
    const part = try fixture.exchange(fd, "", whole[0 .. file_size / 2]);
    const head_size = part.len - bodyOf(part).len;
    const rest = try fixture.exchange(fd, "", whole[part.len..][0..head_size]);
    const body = whole[head_size .. part.len + rest.len];
    try testing.expectEqual(file_size / 2, body.len);
    for (body, file_size / 2..) |byte, index| try testing.expectEqual(byteAt(index), byte);
    try testing.expect(!first.awaits_disk);
}

test "an answer that promises a record is sent when the record is written, and no other waits" {
    const fixture = try Fixture.init(4);
    defer fixture.deinit();
    var fds: [3]i32 = undefined;
    for (fds[0..2]) |*fd| {
        fd.* = try fixture.connect();
        try sys.writeAll(fd.*, "GET /promise HTTP/1.1\r\n\r\n");
        for (0..3) |_| try fixture.turn();
    }
    fds[2] = try fixture.connect();
    defer for (fds[1..]) |fd| sys.close(fd);
    var buffer: [1024]u8 = undefined;
    const other = try fixture.exchange(fds[2], "GET /small HTTP/1.0\r\n\r\n", &buffer);
    try testing.expectEqualStrings("0123456789", bodyOf(other));
    try testing.expectEqual(2, fixture.given);
    // A client that is gone is not answered; the next one in its slot waits for nothing.
    try closeAtOnce(fds[0]);
    for (0..3) |_| try fixture.turn();
    try testing.expectEqual(.free, fixture.server.connections.all[0].state);
    fixture.written = 1;
    fixture.server.endRecords();
    for (0..3) |_| try fixture.turn();
    try testing.expectEqual(0, fixture.server.connections.all[1].head_sent);
    fixture.written = 2;
    fixture.server.endRecords();
    const size = fixture.server.connections.all[1].head_size + "promised".len;
    const answer = try fixture.exchange(fds[1], "", buffer[0..size]);
    try testing.expectEqualStrings("promised", bodyOf(answer));
    const again = try fixture.connect();
    defer sys.close(again);
    const small = try fixture.exchange(again, "GET /small HTTP/1.0\r\n\r\n", &buffer);
    try testing.expectEqualStrings("0123456789", bodyOf(small));
}

test "a request that needs a version waits until it is open, and others are answered meanwhile" {
    const fixture = try Fixture.init(3);
    defer fixture.deinit();
    var fds: [3]i32 = undefined;
    for (fds[0..2]) |*fd| {
        fd.* = try fixture.connect();
        try sys.writeAll(fd.*, "GET /version HTTP/1.1\r\n\r\nGET /small HTTP/1.0\r\n\r\n");
        for (0..3) |_| try fixture.turn();
    }
    defer sys.close(fds[1]);
    const all = fixture.server.connections.all;
    for (all[0..2]) |*connection| try testing.expectEqual(.waiting, connection.state);
    try testing.expectEqual(2, fixture.server.answerCount());
    var buffer: [1024]u8 = undefined;
    fds[2] = try fixture.connect();
    const other = try fixture.exchange(fds[2], "GET /small HTTP/1.0\r\n\r\n", &buffer);
    try testing.expectEqualStrings("0123456789", bodyOf(other));
    sys.close(fds[2]);
    // A client that is gone waits for nothing.
    try closeAtOnce(fds[0]);
    for (0..3) |_| try fixture.turn();
    try testing.expectEqual(.free, all[0].state);
    // Another version has been opened.
    fixture.server.onVersionOpened(fixture.now_us);
    try testing.expectEqual(.waiting, all[1].state);
    fixture.is_version_open = true;
    fixture.server.onVersionOpened(fixture.now_us);
    const answers = try fixture.exchange(fds[1], "", &buffer);
    try testing.expect(std.mem.find(u8, answers, "\r\n\r\nversionHTTP/1.1 200 OK") != null);
    try testing.expect(std.mem.endsWith(u8, answers, "0123456789"));
}

test "a request that has waited too long for a version is told so, and its connection ends" {
    const fixture = try Fixture.init(1);
    defer fixture.deinit();
    const fd = try fixture.connect();
    defer sys.close(fd);
    try sys.writeAll(fd, "GET /version HTTP/1.1\r\n\r\n");
    for (0..3) |_| try fixture.turn();
    fixture.now_us += 50 * std.time.us_per_s;
    fixture.server.onVersionOpened(fixture.now_us);
    fixture.server.tick(fixture.now_us);
    try testing.expectEqual(.waiting, fixture.server.connections.all[0].state);
    fixture.now_us += 11 * std.time.us_per_s;
    fixture.server.tick(fixture.now_us);
    var buffer: [1024]u8 = undefined;
    const answer = try fixture.exchange(fd, "", &buffer);
    try testing.expect(std.mem.startsWith(u8, answer, "HTTP/1.1 503 "));
    try testing.expect(std.mem.find(u8, bodyOf(answer), "could not open the version") != null);
    try testing.expectEqual(.free, fixture.server.connections.all[0].state);
}

test "a disk of the store is read and checked by a thread, piece by piece" {
    const fixture = try Fixture.init(4);
    defer fixture.deinit();
    var warmer: PageWarmer = try .init(.{});
    fixture.server.warmer = &warmer;
    const fd = try fixture.connect();
    defer sys.close(fd);
    try sys.writeAll(fd, "GET /disk HTTP/1.0\r\n\r\n");
    for (0..3) |_| try fixture.turn();
    const first = &fixture.server.connections.all[0];
    try testing.expect(first.awaits_disk and first.task.is_busy);
    const other = try fixture.connect();
    defer sys.close(other);
    var small: [1024]u8 = undefined;
    const answer = try fixture.exchange(other, "GET /small HTTP/1.0\r\n\r\n", &small);
    try testing.expectEqualStrings("0123456789", bodyOf(answer));
    try warmer.run();
    defer warmer.deinit();
    const whole = try testing.allocator.alloc(u8, file_size + 1024);
    defer testing.allocator.free(whole);
    const body = bodyOf(try fixture.exchange(fd, "", whole));
    try testing.expectEqual(file_size, body.len);
    for (body, 0..) |byte, index| try testing.expectEqual(byteAt(index), byte);
    try testing.expectEqual(file_size, fixture.disk_read_to);
    try testing.expectEqual(0, fixture.disk_waits);
}
